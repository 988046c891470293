//! Printers: text tables of accounting and Slurm's JSON. They know forms, no records.

pub mod json;
pub mod table;
