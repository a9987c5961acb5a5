//! What a step of a plan does, as data: the planner applies it to a copy of the evidence, emitters write it into
//! files, and neither reads the other's words.

use super::{CudaVersion, DriverVersion, GfxProcessor, Manager, SmArch};

/// A `NAME=value` of the build.
pub type Setting = (String, String);

/// Machine code that a build is to have, and PTX for what comes later.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Built {
    /// Sorted.
    pub sass: Vec<SmArch>,
    pub ptx: Vec<SmArch>,
    /// AMD's processors. Sorted.
    pub gfx: Vec<GfxProcessor>,
    /// The toolkit that compiles it, where that is known.
    pub toolkit: Option<CudaVersion>,
}

/// How a project is told its architectures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnobForm {
    /// Environment variable of the build.
    Env,
    /// `-DNAME=value` of CMake.
    Cmake,
    /// `--build-arg` of the project's own Dockerfile.
    Arg,
    /// Variable of make.
    Make,
    /// Flag of a command.
    Flag,
}

/// What a step changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Another wheel of a Python package.
    Wheel {
        /// The package's normalised name, `torch`.
        package: String,
        /// `2.7.0`; absent: any that the range allows.
        version: Option<String>,
        /// `==2.7.0` or `>=0.48`; empty: the newest.
        specifier: String,
        /// The name of the index that it is on, `cu128`, and its address; absent: the default index.
        index: Option<(String, String)>,
        /// What it holds; absent where no row says.
        built: Option<Built>,
        /// The CUDA release that it is built with.
        cuda: Option<CudaVersion>,
    },
    /// Built from source, by the project's own knob.
    Source {
        /// The component's name.
        component: String,
        /// The project in build_knobs.toml; absent: nobody knows its knob.
        project: Option<String>,
        form: KnobForm,
        setting: Setting,
        built: Built,
        /// How it is installed from source, one line of shell; empty where no row says.
        install: String,
    },
    /// The final stage starts from another image.
    Base {
        from: String,
        to: String,
    },
    /// A directory is taken out of a path variable.
    DropEntry {
        variable: String,
        entry: String,
    },
    /// An environment variable of the image.
    SetVariable {
        name: String,
        value: String,
    },
    UnsetVariable {
        name: String,
    },
    /// Packages that should not be there.
    RemovePackages {
        manager: Manager,
        names: Vec<String>,
    },
    /// Packages that are missing, by the manager's own names, and the libraries that they bring.
    AddPackages {
        manager: Manager,
        names: Vec<String>,
        libraries: Vec<String>,
    },
    /// Another driver on the hosts of these targets.
    Driver {
        targets: Vec<String>,
        least: DriverVersion,
    },
    /// The targets leave the fleet of this image.
    DropTargets {
        targets: Vec<String>,
    },
    /// Words only: nothing here knows how to do it.
    Advice,
}

impl Change {
    /// Whether a build of the image does it, and not the hosts or the fleet.
    pub fn is_of_the_image(&self) -> bool {
        !matches!(self, Self::Driver { .. } | Self::DropTargets { .. } | Self::Advice)
    }
}
