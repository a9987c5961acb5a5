//! All of the driver's libraries asked for.

use crate::lint::dockerfile::{Found, Lint};

pub fn check(lint: &Lint<'_>, out: &mut Vec<Found>) {
    for set in lint.image_env() {
        let all = |value: &str| value.split(',').any(|c| c.trim() == "all");
        if set.name == "NVIDIA_DRIVER_CAPABILITIES" && set.value.known().is_some_and(all) {
            out.push(
                Found::note(
                    set.value_span(),
                    "NVIDIA_DRIVER_CAPABILITIES=all brings all of the driver's libraries into the container, those for \
                     displays among them",
                )
                .label("everything")
                .help("name what is used: compute,utility for CUDA, video for NVENC and NVDEC, graphics for OpenGL and Vulkan"),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::lint::dockerfile::lab::blamed;

    const RULE: &str = "driver-capabilities-all";

    #[test]
    fn only_all() {
        assert_eq!(blamed(RULE, "FROM ubuntu\nENV NVIDIA_DRIVER_CAPABILITIES=all\n", &[]), ["all"]);
        for quiet in ["compute,utility", "$CAPS"] {
            let file = format!("FROM ubuntu\nARG CAPS\nENV NVIDIA_DRIVER_CAPABILITIES={quiet}\n");
            assert!(blamed(RULE, &file, &[]).is_empty(), "{file}");
        }
    }
}
