ARG a
ARG b=c
