//! Labels of nodes that tell of GPUs: those that are read, and those that are asked for again of a scheduler.

/// GPU Feature Discovery: the product, blanks as hyphens, with what is appended for MIG and sharing.
pub const PRODUCT: &str = "nvidia.com/gpu.product";
pub const COMPUTE_MAJOR: &str = "nvidia.com/gpu.compute.major";
pub const COMPUTE_MINOR: &str = "nvidia.com/gpu.compute.minor";
/// Of nodes whose GPUs are all sliced alike.
pub const MIG_SLICES: &str = "nvidia.com/gpu.slices.gi";
pub const MIG_STRATEGY: &str = "nvidia.com/mig.strategy";
pub const VGPU_PRESENT: &str = "nvidia.com/vgpu.present";
pub const DRIVER_FULL: &str = "nvidia.com/cuda.driver-version.full";
/// The driver's parts: as they are written now, and as they were before, and still are beside these.
pub const DRIVER: [&str; 3] = [
    "nvidia.com/cuda.driver-version.major",
    "nvidia.com/cuda.driver-version.minor",
    "nvidia.com/cuda.driver-version.revision",
];
pub const DRIVER_BEFORE: [&str; 3] =
    ["nvidia.com/cuda.driver.major", "nvidia.com/cuda.driver.minor", "nvidia.com/cuda.driver.rev"];

/// Google's, AWS's of two autoscalers, and everybody's.
pub const GKE_ACCELERATOR: &str = "cloud.google.com/gke-accelerator";
/// NVIDIA's operator, or the wish for it, in place of Google's own plugin: `true`.
pub const NOT_GKES_OWN: [&str; 3] = [
    "nvidia.com/gpu.deploy.container-toolkit",
    "gke-no-default-nvidia-gpu-device-plugin",
    "cloud.google.com/gke-no-default-nvidia-gpu-device-plugin",
];
pub const GKE_PARTITION: &str = "cloud.google.com/gke-gpu-partition-size";
pub const EKS_ACCELERATOR: &str = "k8s.amazonaws.com/accelerator";
pub const KARPENTER_GPU: &str = "karpenter.k8s.aws/instance-gpu-name";
pub const INSTANCE_TYPE: &str = "node.kubernetes.io/instance-type";
pub const ARCH: &str = "kubernetes.io/arch";

/// AMD's node labeller.
pub const AMD_PRODUCT: &str = "amd.com/gpu.product-name";
pub const AMD_DEVICE: &str = "amd.com/gpu.device-id";
pub const AMD_DRIVER: &str = "amd.com/gpu.driver-version";

/// Intel's rules for Node Feature Discovery: the product, and the beginning of a label with a class and a device id.
pub const INTEL_PRODUCT: &str = "gpu.intel.com/product";
pub const INTEL_DEVICE: &str = "gpu.intel.com/device-id.";
