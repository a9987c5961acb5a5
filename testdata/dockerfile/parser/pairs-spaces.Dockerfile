FROM scratch
ENV A = b
ARG C = d
