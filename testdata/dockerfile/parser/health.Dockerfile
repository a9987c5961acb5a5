FROM scratch
HEALTHCHECK NONE
healthcheck cmd a b
HEALTHCHECK CMD ["a", "b"]
HEALTHCHECK   CMD   a
