//! How `-v` shows values: normalized, so that a user sees what was understood.

use super::Settings;
use sluice_model::time::{format_time, format_time_limit_long};

impl Settings {
    /// The value of an option that was just taken.
    pub(super) fn display(&self, key: &str, text: &str, has_value: bool) -> String {
        let job = &self.job;
        match key {
            "time" => job.time_limit.map(format_time_limit_long).unwrap_or_else(|| text.to_owned()),
            "time-min" => job.time_min.map(format_time_limit_long).unwrap_or_else(|| text.to_owned()),
            "begin" => job.begin.map(|t| format_time(t, &self.tz())).unwrap_or_default(),
            "deadline" => job.deadline.map(|t| format_time(t, &self.tz())).unwrap_or_default(),
            "verbose" => self.client.verbose.to_string(),
            "nice" => job.nice.to_string(),
            "gres" => format!("gres:{text}"),
            "exclusive" if !has_value => "exclusive".to_owned(),
            "immediate" => job.immediate_secs.unwrap_or(0).to_string(),
            "open-mode" => text.chars().take(1).collect(),
            "propagate" if !has_value => "ALL".to_owned(),
            _ if has_value => text.to_owned(),
            _ => "set".to_owned(),
        }
    }
}
