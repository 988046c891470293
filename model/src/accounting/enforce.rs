//! What the controller insists on (AccountingStorageEnforce).

/// Nothing is enforced by default: a cluster on which no account was ever made accepts everybody.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Enforce {
    /// Jobs need an association.
    pub associations: bool,
    /// Limits of associations and QOS hold.
    pub limits: bool,
    /// Jobs need a QOS that their association may use.
    pub qos: bool,
    /// A job starts only when it can end within its group's minutes.
    pub safe: bool,
    /// Jobs need a wckey that their user has.
    pub wckeys: bool,
}

impl Enforce {
    pub const ALLOWED: &'static str = "associations, limits, qos, safe, wckeys, all";

    /// The words of AccountingStorageEnforce; each implies what it builds on. The first unknown word is the error.
    pub fn parse<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Enforce, &'a str> {
        let mut e = Enforce::default();
        for word in words {
            match word.to_ascii_lowercase().as_str() {
                "associations" => {}
                "limits" => e.limits = true,
                "qos" => e.qos = true,
                "safe" => (e.limits, e.safe) = (true, true),
                "wckeys" => e.wckeys = true,
                "all" => (e.limits, e.qos, e.safe, e.wckeys) = (true, true, true, true),
                _ => return Err(word),
            }
            e.associations = true;
        }
        Ok(e)
    }

    /// As `scontrol show config` lists them.
    pub fn words(self) -> Vec<&'static str> {
        let all = [
            (self.associations, "associations"),
            (self.limits, "limits"),
            (self.qos, "qos"),
            (self.safe, "safe"),
            (self.wckeys, "wckeys"),
        ];
        all.into_iter().filter(|(on, _)| *on).map(|(_, word)| word).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_brings_what_it_builds_on() {
        assert_eq!(Enforce::parse(["safe"]).unwrap().words(), ["associations", "limits", "safe"]);
        assert_eq!(Enforce::parse(["QOS"]).unwrap().words(), ["associations", "qos"]);
        assert_eq!(Enforce::parse([]).unwrap(), Enforce::default());
        assert_eq!(Enforce::parse(["limits", "nosuch"]), Err("nosuch"));
    }
}
