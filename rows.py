p='rules/data/extensions.toml'; s=open(p).read()
def row(name, f):
    global s
    i=s.index(f'project = "{name}"\n'); j=s.find('[[extension]]',i); j=len(s) if j<0 else j
    n=f(s[i:j]); assert n!=s[i:j] or 'clamps' in n, name
    s=s[:i]+n+s[j:]
clamp=lambda r: r if 'clamps' in r else r.replace('unset =','clamps = true\nunset =',1)
for n in ["vllm","aphrodite-engine","flash-attn","tiny-cuda-nn","sglang kernels"]: row(n,clamp)
row("xformers",lambda r:r.replace('force = ["FORCE_CUDA=1"]','force = ["FORCE_CUDA=1", "TORCH_CUDA_ARCH_LIST"]'))
row("flashinfer",lambda r:r.replace('variables = ["FLASHINFER_CUDA_ARCH_LIST"]\nignores_torch_list = true\n','variables = ["FLASHINFER_CUDA_ARCH_LIST", "TORCH_CUDA_ARCH_LIST"]\n').replace('unset = "visible-gpu"\n','unset = "visible-gpu"\ncuda_when = ["FLASHINFER_ENABLE_AOT=1"]\n').replace('source = "flashinfer@fb28d7242 flashinfer/compilation_context.py"','source = "flashinfer@fb28d7242 flashinfer/compilation_context.py; before 0.4 setup.py built ahead of time with FLASHINFER_ENABLE_AOT=1 and read TORCH_CUDA_ARCH_LIST"'))
s=s.replace("# unset: what a build without any list","# clamps: members of the list that it or its toolkit does not know are dropped.\n# unset: what a build without any list",1)
open(p,'w').write(s)
import tomllib; tomllib.loads(s)
