//! `sluice completion bash|zsh|fish`: shell completion, made from the option tables.

use crate::commands::COMMANDS;
use crate::getopt::{Arg, OptionSpec, State};
use crate::{errln, out};
use std::ffi::OsString;
use std::fmt::Write;
use std::process::ExitCode;

const NAME: &str = "sluice completion";

pub fn main(words: Vec<OsString>) -> ExitCode {
    let shell = words.first().map(|w| w.to_string_lossy().into_owned()).unwrap_or_default();
    let text = match shell.as_str() {
        "bash" => bash(),
        "zsh" => format!("#compdef {}\nautoload -U bashcompinit && bashcompinit\n{}", names().join(" "), bash()),
        "fish" => fish(),
        _ => {
            errln!("Usage: {NAME} bash|zsh|fish");
            return ExitCode::from(255);
        }
    };
    out::print_or_complain(NAME, text.as_bytes(), ExitCode::SUCCESS)
}

fn names() -> Vec<&'static str> {
    COMMANDS.iter().map(|c| c.name).collect()
}

/// What may be offered: long options that work or are kept.
fn offered(options: &'static [OptionSpec]) -> impl Iterator<Item = &'static OptionSpec> {
    options.iter().filter(|o| !o.long.is_empty() && !o.help.is_empty() && !matches!(o.state, State::Refused(_)))
}

fn bash() -> String {
    let mut text = String::from("_sluice_options() {\n  case \"$1\" in\n");
    for command in COMMANDS {
        let words: Vec<String> = offered((command.options)())
            .map(|o| format!("--{}{}", o.long, if matches!(o.arg, Arg::Required(_)) { "=" } else { "" }))
            .collect();
        // Writing to a String cannot fail.
        let _ = writeln!(text, "    {}) echo '{}' ;;", command.name, words.join(" "));
    }
    text.push_str(
        "  esac\n}\n_sluice() {\n  local cur=\"${COMP_WORDS[COMP_CWORD]}\" name=\"${COMP_WORDS[0]##*/}\"\n  \
         if [ \"$name\" = sluice ]; then\n    if [ \"$COMP_CWORD\" = 1 ]; then\n      \
         COMPREPLY=($(compgen -W '",
    );
    text.push_str(&names().join(" "));
    text.push_str(
        " local config why sim completion' -- \"$cur\"))\n      return\n    fi\n    name=\"${COMP_WORDS[1]}\"\n  fi\n  \
         case \"$cur\" in\n    -*) COMPREPLY=($(compgen -W \"$(_sluice_options \"$name\")\" -- \"$cur\"))\n      \
         [[ \"${COMPREPLY[0]}\" == *= ]] && compopt -o nospace ;;\n    *) COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n  esac\n}\n",
    );
    let _ = writeln!(text, "complete -F _sluice sluice {}", names().join(" "));
    text
}

fn fish() -> String {
    let mut text = String::new();
    for command in COMMANDS {
        let _ = writeln!(
            text,
            "complete -c sluice -n __fish_use_subcommand -a {} -d '{}'",
            command.name,
            quoted(command.about)
        );
        for option in offered((command.options)()) {
            let short = option.short.map(|c| format!(" -s {c}")).unwrap_or_default();
            let value = if matches!(option.arg, Arg::Required(_)) { " -r" } else { "" };
            let _ = writeln!(
                text,
                "complete -c {}{short} -l {}{value} -d '{}'",
                command.name,
                option.long,
                quoted(option.help)
            );
        }
    }
    text
}

fn quoted(text: &str) -> String {
    text.replace('\'', "\\'")
}
