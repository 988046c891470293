//! Why a job waits or how it ended, in Slurm's words (squeue's manual page, "JOB REASON CODES").
//!
//! The numbers are ours and are persisted: add at the end, never renumber. A reason never holds a blank.

macro_rules! reasons {
    ($first:ident = $fnum:literal $ftext:literal, $($name:ident = $num:literal $text:literal),* $(,)?) => {
        /// A reason code.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
        #[repr(u16)]
        pub enum Reason {
            #[default]
            $first = $fnum,
            $($name = $num),*
        }
        impl Reason {
            pub const ALL: &'static [Reason] = &[Reason::$first, $(Reason::$name),*];
            pub fn as_str(self) -> &'static str {
                match self { Reason::$first => $ftext, $(Reason::$name => $text),* }
            }
            /// Unknown numbers (from a newer release) read as None.
            pub fn from_number(n: u32) -> Reason {
                match n { $($num => Reason::$name,)* _ => Reason::$first }
            }
            /// A limit of an association or a QOS: no end of another job alone lifts it.
            pub fn is_limit(self) -> bool {
                (200..400).contains(&(self as u16)) || self == Reason::AssocMaxJobsLimit
            }
            pub fn number(self) -> u32 {
                u32::from(self as u16)
            }
        }
    };
}

reasons! {
    None = 0 "None",
    Priority = 1 "Priority",
    Resources = 2 "Resources",
    Dependency = 3 "Dependency",
    DependencyNeverSatisfied = 4 "DependencyNeverSatisfied",
    BeginTime = 5 "BeginTime",
    JobHeldUser = 6 "JobHeldUser",
    JobHeldAdmin = 7 "JobHeldAdmin",
    JobArrayTaskLimit = 8 "JobArrayTaskLimit",
    PartitionDown = 9 "PartitionDown",
    PartitionInactive = 10 "PartitionInactive",
    PartitionNodeLimit = 11 "PartitionNodeLimit",
    PartitionTimeLimit = 12 "PartitionTimeLimit",
    NodeDown = 13 "NodeDown",
    ReqNodeNotAvail = 14 "ReqNodeNotAvail",
    BadConstraints = 15 "BadConstraints",
    Licenses = 16 "Licenses",
    Reservation = 17 "Reservation",
    DeadLine = 18 "DeadLine",
    JobHoldMaxRequeue = 19 "JobHoldMaxRequeue",
    JobLaunchFailure = 20 "JobLaunchFailure",
    NonZeroExitCode = 21 "NonZeroExitCode",
    RaisedSignal = 22 "RaisedSignal",
    TimeLimit = 23 "TimeLimit",
    OutOfMemory = 24 "OutOfMemory",
    NodeFail = 25 "NodeFail",
    InactiveLimit = 26 "InactiveLimit",
    SystemFailure = 27 "SystemFailure",
    AssocMaxJobsLimit = 28 "AssocMaxJobsLimit",
    AccountNotAllowed = 29 "AccountNotAllowed",
    QOSNotAllowed = 30 "QOSNotAllowed",
    InvalidAccount = 31 "InvalidAccount",
    InvalidQOS = 32 "InvalidQOS",
    Prolog = 33 "Prolog",
    Cleaning = 34 "Cleaning",
    SchedDefer = 35 "SchedDefer",
    MaxRequeueLimit = 36 "MaxRequeueLimit",
    UserNotAllowed = 37 "UserNotAllowed",
    GroupNotAllowed = 38 "GroupNotAllowed",
    Immediate = 39 "Immediate",
    JobRequeuedHeld = 60 "job_requeued_in_held_state",
    AssocGrpCpuLimit = 200 "AssocGrpCpuLimit",
    AssocGrpMemLimit = 201 "AssocGrpMemLimit",
    AssocGrpNodeLimit = 202 "AssocGrpNodeLimit",
    AssocGrpGRES = 203 "AssocGrpGRES",
    AssocGrpBilling = 204 "AssocGrpBilling",
    AssocGrpLicense = 205 "AssocGrpLicense",
    AssocGrpEnergy = 206 "AssocGrpEnergy",
    AssocGrpCPUMinutesLimit = 207 "AssocGrpCPUMinutesLimit",
    AssocGrpMemMinutes = 208 "AssocGrpMemMinutes",
    AssocGrpNodeMinutes = 209 "AssocGrpNodeMinutes",
    AssocGrpGRESMinutes = 210 "AssocGrpGRESMinutes",
    AssocGrpBillingMinutes = 211 "AssocGrpBillingMinutes",
    AssocGrpLicenseMinutes = 212 "AssocGrpLicenseMinutes",
    AssocGrpEnergyMinutes = 213 "AssocGrpEnergyMinutes",
    AssocGrpCPURunMinutesLimit = 214 "AssocGrpCPURunMinutesLimit",
    AssocGrpMemRunMinutes = 215 "AssocGrpMemRunMinutes",
    AssocGrpNodeRunMinutes = 216 "AssocGrpNodeRunMinutes",
    AssocGrpGRESRunMinutes = 217 "AssocGrpGRESRunMinutes",
    AssocGrpBillingRunMinutes = 218 "AssocGrpBillingRunMinutes",
    AssocGrpLicenseRunMinutes = 219 "AssocGrpLicenseRunMinutes",
    AssocGrpEnergyRunMinutes = 220 "AssocGrpEnergyRunMinutes",
    AssocMaxCpuPerJobLimit = 221 "AssocMaxCpuPerJobLimit",
    AssocMaxMemPerJob = 222 "AssocMaxMemPerJob",
    AssocMaxNodePerJobLimit = 223 "AssocMaxNodePerJobLimit",
    AssocMaxGRESPerJob = 224 "AssocMaxGRESPerJob",
    AssocMaxBillingPerJob = 225 "AssocMaxBillingPerJob",
    AssocMaxLicensePerJob = 226 "AssocMaxLicensePerJob",
    AssocMaxEnergyPerJob = 227 "AssocMaxEnergyPerJob",
    AssocMaxCpuPerNode = 228 "AssocMaxCpuPerNode",
    AssocMaxMemPerNode = 229 "AssocMaxMemPerNode",
    AssocMaxGRESPerNode = 230 "AssocMaxGRESPerNode",
    AssocMaxBillingPerNode = 231 "AssocMaxBillingPerNode",
    AssocMaxEnergyPerNode = 232 "AssocMaxEnergyPerNode",
    AssocMaxCpuMinutesPerJobLimit = 233 "AssocMaxCpuMinutesPerJobLimit",
    AssocMaxMemMinutesPerJob = 234 "AssocMaxMemMinutesPerJob",
    AssocMaxNodeMinutesPerJob = 235 "AssocMaxNodeMinutesPerJob",
    AssocMaxGRESMinutesPerJob = 236 "AssocMaxGRESMinutesPerJob",
    AssocMaxBillingMinutesPerJob = 237 "AssocMaxBillingMinutesPerJob",
    AssocMaxLicenseMinutesPerJob = 238 "AssocMaxLicenseMinutesPerJob",
    AssocMaxEnergyMinutesPerJob = 239 "AssocMaxEnergyMinutesPerJob",
    AssocGrpJobsLimit = 240 "AssocGrpJobsLimit",
    AssocGrpSubmitJobsLimit = 241 "AssocGrpSubmitJobsLimit",
    AssocGrpWallLimit = 242 "AssocGrpWallLimit",
    AssocMaxSubmitJobLimit = 243 "AssocMaxSubmitJobLimit",
    AssocMaxWallDurationPerJobLimit = 244 "AssocMaxWallDurationPerJobLimit",
    QOSGrpCpuLimit = 245 "QOSGrpCpuLimit",
    QOSGrpMemLimit = 246 "QOSGrpMemLimit",
    QOSGrpNodeLimit = 247 "QOSGrpNodeLimit",
    QOSGrpGRES = 248 "QOSGrpGRES",
    QOSGrpBilling = 249 "QOSGrpBilling",
    QOSGrpLicense = 250 "QOSGrpLicense",
    QOSGrpEnergy = 251 "QOSGrpEnergy",
    QOSGrpCPUMinutesLimit = 252 "QOSGrpCPUMinutesLimit",
    QOSGrpMemMinutes = 253 "QOSGrpMemMinutes",
    QOSGrpNodeMinutes = 254 "QOSGrpNodeMinutes",
    QOSGrpGRESMinutes = 255 "QOSGrpGRESMinutes",
    QOSGrpBillingMinutes = 256 "QOSGrpBillingMinutes",
    QOSGrpLicenseMinutes = 257 "QOSGrpLicenseMinutes",
    QOSGrpEnergyMinutes = 258 "QOSGrpEnergyMinutes",
    QOSGrpCPURunMinutesLimit = 259 "QOSGrpCPURunMinutesLimit",
    QOSGrpMemRunMinutes = 260 "QOSGrpMemRunMinutes",
    QOSGrpNodeRunMinutes = 261 "QOSGrpNodeRunMinutes",
    QOSGrpGRESRunMinutes = 262 "QOSGrpGRESRunMinutes",
    QOSGrpBillingRunMinutes = 263 "QOSGrpBillingRunMinutes",
    QOSGrpLicenseRunMinutes = 264 "QOSGrpLicenseRunMinutes",
    QOSGrpEnergyRunMinutes = 265 "QOSGrpEnergyRunMinutes",
    QOSMaxCpuPerJobLimit = 266 "QOSMaxCpuPerJobLimit",
    QOSMaxMemoryPerJob = 267 "QOSMaxMemoryPerJob",
    QOSMaxNodePerJobLimit = 268 "QOSMaxNodePerJobLimit",
    QOSMaxGRESPerJob = 269 "QOSMaxGRESPerJob",
    QOSMaxBillingPerJob = 270 "QOSMaxBillingPerJob",
    QOSMaxLicensePerJob = 271 "QOSMaxLicensePerJob",
    QOSMaxEnergyPerJob = 272 "QOSMaxEnergyPerJob",
    QOSMaxCpuPerNode = 273 "QOSMaxCpuPerNode",
    QOSMaxMemoryPerNode = 274 "QOSMaxMemoryPerNode",
    QOSMaxGRESPerNode = 275 "QOSMaxGRESPerNode",
    QOSMaxBillingPerNode = 276 "QOSMaxBillingPerNode",
    QOSMaxEnergyPerNode = 277 "QOSMaxEnergyPerNode",
    QOSMaxCpuMinutesPerJobLimit = 278 "QOSMaxCpuMinutesPerJobLimit",
    QOSMaxMemoryMinutesPerJob = 279 "QOSMaxMemoryMinutesPerJob",
    QOSMaxNodeMinutesPerJob = 280 "QOSMaxNodeMinutesPerJob",
    QOSMaxGRESMinutesPerJob = 281 "QOSMaxGRESMinutesPerJob",
    QOSMaxBillingMinutesPerJob = 282 "QOSMaxBillingMinutesPerJob",
    QOSMaxLicenseMinutesPerJob = 283 "QOSMaxLicenseMinutesPerJob",
    QOSMaxEnergyMinutesPerJob = 284 "QOSMaxEnergyMinutesPerJob",
    QOSMaxCpuPerUserLimit = 285 "QOSMaxCpuPerUserLimit",
    QOSMaxMemoryPerUser = 286 "QOSMaxMemoryPerUser",
    QOSMaxNodePerUserLimit = 287 "QOSMaxNodePerUserLimit",
    QOSMaxGRESPerUser = 288 "QOSMaxGRESPerUser",
    QOSMaxBillingPerUser = 289 "QOSMaxBillingPerUser",
    QOSMaxLicensePerUser = 290 "QOSMaxLicensePerUser",
    QOSMaxEnergyPerUser = 291 "QOSMaxEnergyPerUser",
    MaxCpuPerAccount = 292 "MaxCpuPerAccount",
    MaxMemoryPerAccount = 293 "MaxMemoryPerAccount",
    MaxNodePerAccount = 294 "MaxNodePerAccount",
    MaxGRESPerAccount = 295 "MaxGRESPerAccount",
    MaxBillingPerAccount = 296 "MaxBillingPerAccount",
    MaxLicensePerAccount = 297 "MaxLicensePerAccount",
    MaxEnergyPerAccount = 298 "MaxEnergyPerAccount",
    QOSMinCpuNotSatisfied = 299 "QOSMinCpuNotSatisfied",
    QOSMinMemory = 300 "QOSMinMemory",
    QOSMinNode = 301 "QOSMinNode",
    QOSMinGRES = 302 "QOSMinGRES",
    QOSMinBilling = 303 "QOSMinBilling",
    QOSMinLicense = 304 "QOSMinLicense",
    QOSMinEnergy = 305 "QOSMinEnergy",
    QOSGrpJobsLimit = 306 "QOSGrpJobsLimit",
    QOSGrpSubmitJobsLimit = 307 "QOSGrpSubmitJobsLimit",
    QOSGrpWallLimit = 308 "QOSGrpWallLimit",
    QOSMaxJobsPerUserLimit = 309 "QOSMaxJobsPerUserLimit",
    QOSMaxSubmitJobPerUserLimit = 310 "QOSMaxSubmitJobPerUserLimit",
    QOSMaxWallDurationPerJobLimit = 311 "QOSMaxWallDurationPerJobLimit",
    MaxJobsPerAccount = 312 "MaxJobsPerAccount",
    MaxSubmitJobsPerAccount = 313 "MaxSubmitJobsPerAccount",
    QOSUsageThreshold = 314 "QOSUsageThreshold",
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}
