FROM scratch
\
