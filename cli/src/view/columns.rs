//! Column layouts of `squeue` and `sinfo`: `-o "%.18i %9P"` and `-O name:width`.
//!
//! Owns how a layout is written by users and how values are padded and cut. It knows no field: letters and names are
//! resolved by the caller's tables, values are written by the caller straight into the output buffer, so that a row
//! costs no allocation.
//!
//! Sources: squeue(1), `--format` and `--Format`; widths and suffixes as Slurm was seen to treat them.

/// One column. `field: None` stands for literal text alone (an unknown letter prints itself, as Slurm does).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column<F> {
    pub field: Option<F>,
    /// None: as wide as the value.
    pub width: Option<usize>,
    pub right: bool,
    /// Printed after the column.
    pub suffix: String,
}

/// Text before the first column, then the columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout<F> {
    pub prefix: String,
    pub columns: Vec<Column<F>>,
}

/// The width of a `-O` column that names none.
pub const LONG_FORM_WIDTH: usize = 20;

impl<F: Copy> Layout<F> {
    /// Reads `%[[.]size]letter[suffix]…`. Letters that `find` does not know are returned as well, and print themselves.
    pub fn parse_letters(text: &str, find: impl Fn(char) -> Option<F>) -> (Layout<F>, Vec<char>) {
        let mut unknown = Vec::new();
        let mut columns = Vec::new();
        let (prefix, mut rest) = match text.find('%') {
            Some(at) => (text[..at].to_owned(), &text[at..]),
            None => (text.to_owned(), ""),
        };
        while let Some(body) = rest.strip_prefix('%') {
            let (right, after_dot) = match body.strip_prefix('.') {
                Some(r) => (true, r),
                None => (false, body),
            };
            let digits = after_dot.bytes().take_while(u8::is_ascii_digit).count();
            let width = after_dot[..digits].parse().ok().filter(|w| *w > 0);
            let mut chars = after_dot[digits..].chars();
            let letter = chars.next();
            let tail = chars.as_str();
            let end = tail.find('%').unwrap_or(tail.len());
            let suffix = &tail[..end];
            rest = &tail[end..];
            let Some(letter) = letter else { break };
            match find(letter) {
                Some(field) => {
                    columns.push(Column { field: Some(field), width, right, suffix: suffix.to_owned() });
                }
                None => {
                    unknown.push(letter);
                    columns.push(Column {
                        field: None,
                        width: None,
                        right: false,
                        suffix: format!("%{letter}{suffix}"),
                    });
                }
            }
        }
        (Layout { prefix, columns }, unknown)
    }

    /// Reads `name[:[.][size][suffix]],…`. Unknown names are returned and take no column.
    pub fn parse_names(text: &str, find: impl Fn(&str) -> Option<F>) -> (Layout<F>, Vec<String>) {
        let mut unknown = Vec::new();
        let mut columns = Vec::new();
        for item in split_names(text) {
            let (name, form) = match item.split_once(':') {
                Some((name, form)) => (name, Some(form)),
                None => (item, None),
            };
            if name.is_empty() {
                continue;
            }
            let Some(field) = find(name) else {
                unknown.push(name.to_owned());
                continue;
            };
            let (width, right, suffix) = match form {
                None | Some("") => (Some(LONG_FORM_WIDTH), false, ""),
                Some(form) => {
                    let (right, form) = match form.strip_prefix('.') {
                        Some(f) => (true, f),
                        None => (false, form),
                    };
                    let digits = form.bytes().take_while(u8::is_ascii_digit).count();
                    (form[..digits].parse().ok().filter(|w| *w > 0), right, &form[digits..])
                }
            };
            columns.push(Column { field: Some(field), width, right, suffix: suffix.to_owned() });
        }
        (Layout { prefix: String::new(), columns }, unknown)
    }

    pub fn fields(&self) -> impl Iterator<Item = F> + '_ {
        self.columns.iter().filter_map(|c| c.field)
    }

    /// Appends one line. `write` appends the value of a field.
    pub fn row(&self, out: &mut Vec<u8>, write: impl FnMut(F, &mut Vec<u8>)) {
        self.row_with(out, write, |_| false);
    }

    /// As `row`; values for which `whole` holds are padded, but never cut.
    pub fn row_with(&self, out: &mut Vec<u8>, mut write: impl FnMut(F, &mut Vec<u8>), whole: impl Fn(F) -> bool) {
        out.extend_from_slice(self.prefix.as_bytes());
        for column in &self.columns {
            let start = out.len();
            if let Some(field) = column.field {
                write(field, out);
            }
            if let Some(width) = column.width {
                let keep = column.field.is_some_and(&whole) && out.len() - start > width;
                if !keep {
                    fit(out, start, width, column.right);
                }
            }
            out.extend_from_slice(column.suffix.as_bytes());
        }
        out.push(b'\n');
    }
}

/// A comma belongs to the suffix of no column: Slurm ends a column at each.
fn split_names(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim)
}

/// Cuts or pads what stands in `out` from `start` on to `width` characters.
pub fn fit(out: &mut Vec<u8>, start: usize, width: usize, right: bool) {
    let starts_char = |b: &u8| b & 0xc0 != 0x80;
    let chars = out[start..].iter().filter(|b| starts_char(b)).count();
    if chars > width {
        let keep = out[start..]
            .iter()
            .enumerate()
            .filter(|(_, b)| starts_char(b))
            .nth(width)
            .map_or(out.len() - start, |(at, _)| at);
        out.truncate(start + keep);
    } else if chars < width {
        let pad = width - chars;
        let end = out.len();
        out.resize(end + pad, b' ');
        if right {
            out.copy_within(start..end, start + pad);
            out[start..start + pad].fill(b' ');
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn letters(text: &str) -> Layout<char> {
        Layout::parse_letters(text, |c| c.is_ascii_alphabetic().then_some(c)).0
    }
    fn line(layout: &Layout<char>) -> String {
        let mut out = Vec::new();
        layout.row(&mut out, |f, out| out.extend_from_slice(format!("<{f}>").as_bytes()));
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn widths_pad_and_cut_on_the_asked_side() {
        assert_eq!(line(&letters("%.5i|%5j|%2t|%.2t|%k")), "  <i>|<j>  |<t|<t|<k>\n");
    }

    #[test]
    fn text_around_the_letters_is_kept() {
        assert_eq!(line(&letters("a %i<><> %t!")), "a <i><><> <t>!\n");
        assert_eq!(line(&letters("plain")), "plain\n");
        assert_eq!(line(&letters("")), "\n");
        assert_eq!(line(&letters("%2t%5j")), "<t<j>  \n");
    }

    #[test]
    fn unknown_letters_print_themselves_and_are_reported() {
        let (layout, unknown) = Layout::parse_letters("%! %i", |c| (c == 'i').then_some(c));
        assert_eq!(unknown, ['!']);
        assert_eq!(line(&layout), "%! <i>\n");
    }

    #[test]
    fn a_lone_percent_or_a_width_without_letter_is_dropped() {
        assert_eq!(line(&letters("%i%")), "<i>\n");
        assert_eq!(line(&letters("%i%.12")), "<i>\n");
        assert_eq!(line(&letters("%99999999999999999999999i")), "<i>\n");
    }

    #[test]
    fn long_names_are_twenty_wide_unless_a_width_or_suffix_is_given() {
        let find = |n: &str| Some(n.chars().next().unwrap());
        let (layout, _) = Layout::parse_names("jobid,name:|,state:10|,x:.5,y:3z", find);
        assert_eq!(line(&layout), "<j>                 <n>|<s>       |  <x><y>z\n");
        let (layout, unknown) = Layout::parse_names("foo,,bar", |n| (n == "bar").then_some('b'));
        assert_eq!(unknown, ["foo"]);
        assert_eq!(layout.columns.len(), 1);
    }

    #[test]
    fn whole_values_run_over_their_width() {
        let mut out = Vec::new();
        letters("%.2i|%.2j").row_with(&mut out, |f, out| out.extend_from_slice(&[f as u8; 4]), |f| f == 'i');
        assert_eq!(out, b"iiii|jj\n");
    }

    #[test]
    fn characters_are_counted_not_bytes() {
        let mut out = "äöü".as_bytes().to_vec();
        fit(&mut out, 0, 2, false);
        assert_eq!(out, "äö".as_bytes());
        fit(&mut out, 0, 4, true);
        assert_eq!(out, "  äö".as_bytes());
    }
}
