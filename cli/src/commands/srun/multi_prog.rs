//! `--multi-prog` files: which tasks run which program (srun's manual page, "MULTIPLE PROGRAM CONFIGURATION").

use sluice_model::IndexSet;

/// A line: tasks, then a command whose `%t` is the task's number and `%o` its place in the line's list.
struct Rule {
    tasks: Tasks,
    command: Vec<String>,
}

enum Tasks {
    Some(IndexSet),
    /// `*`: all that no other line names.
    Rest,
}

/// The command of each task. The error is a line for srun to print.
pub fn parse(text: &str, file: &str, ntasks: u32) -> Result<Vec<Vec<Vec<u8>>>, String> {
    let mut rules = Vec::new();
    for (number, line) in logical_lines(text) {
        let mut words = words(&line).map_err(|what| format!("{file}, line {number}: {what}"))?.into_iter();
        let Some(tasks) = words.next() else { continue };
        let tasks = match tasks.as_str() {
            "*" => Tasks::Rest,
            list => {
                let parsed = IndexSet::parse(list, u32::MAX - 1);
                Tasks::Some(parsed.map_err(|e| format!("{file}, line {number}: {e}"))?.0)
            }
        };
        let command: Vec<String> = words.collect();
        if command.is_empty() {
            return Err(format!("{file}, line {number}: no program after the task numbers"));
        }
        rules.push(Rule { tasks, command });
    }
    (0..ntasks)
        .map(|task| {
            let named = rules.iter().find_map(|r| match &r.tasks {
                Tasks::Some(set) if set.contains(task) => {
                    let offset = set.iter().position(|t| t == task).unwrap_or(0);
                    Some((r, offset.to_string()))
                }
                _ => None,
            });
            let rest = || rules.iter().find(|r| matches!(r.tasks, Tasks::Rest)).map(|r| (r, task.to_string()));
            let (rule, offset) = named
                .or_else(rest)
                .ok_or_else(|| format!("Configuration file {file} invalid, no record for task id {task}"))?;
            let fill = |word: &String| word.replace("%t", &task.to_string()).replace("%o", &offset).into_bytes();
            Ok(rule.command.iter().map(fill).collect())
        })
        .collect()
}

/// Lines joined at a trailing backslash, with the number of their first one; comments and blank lines left out.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut out = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (i, line) in text.lines().enumerate() {
        let (number, mut joined) = open.take().unwrap_or((i + 1, String::new()));
        if joined.is_empty() && line.trim_start().starts_with('#') {
            continue;
        }
        match line.strip_suffix('\\') {
            Some(head) => {
                joined.push_str(head);
                open = Some((number, joined));
            }
            None => {
                joined.push_str(line);
                if !joined.trim().is_empty() {
                    out.push((number, joined));
                }
            }
        }
    }
    out.extend(open.filter(|(_, line)| !line.trim().is_empty()));
    out
}

/// Words; quotes group and a backslash keeps the next character.
fn words(line: &str) -> Result<Vec<String>, &'static str> {
    let mut out = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            (c, Some(q)) if c == q => quote = None,
            (c, Some(_)) => word.get_or_insert_default().push(c),
            ('"' | '\'', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            ('\\', None) => word.get_or_insert_default().extend(chars.next()),
            (c, None) if c.is_whitespace() => out.extend(word.take()),
            (c, None) => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        return Err("a quote is not closed");
    }
    out.extend(word);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(text: &str, ntasks: u32) -> Result<Vec<String>, String> {
        let parsed = parse(text, "mp.conf", ntasks)?;
        Ok(parsed
            .into_iter()
            .map(|c| c.into_iter().map(|w| String::from_utf8(w).unwrap()).collect::<Vec<_>>().join(" "))
            .collect())
    }

    #[test]
    fn each_task_gets_its_line_with_its_number_and_offset() {
        let text = "# comment\n0 echo a %t %o\n\n1-2 echo b \\\n  %t %o\n";
        assert_eq!(commands(text, 3).unwrap(), ["echo a 0 0", "echo b 1 0", "echo b 2 1"]);
    }

    #[test]
    fn a_star_takes_the_rest_and_a_gap_is_an_error() {
        assert_eq!(commands("* rest %t\n1 one\n", 3).unwrap(), ["rest 0", "one", "rest 2"]);
        let error = commands("0-2 a\n", 4).unwrap_err();
        assert_eq!(error, "Configuration file mp.conf invalid, no record for task id 3");
        assert!(commands("0\n", 1).is_err());
        assert!(commands("x a\n", 1).is_err());
    }

    #[test]
    fn quotes_group_words() {
        assert_eq!(parse("0 sh -c 'echo a b'", "f", 1).unwrap()[0].len(), 3);
    }
}
