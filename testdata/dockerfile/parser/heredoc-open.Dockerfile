FROM scratch
RUN <<EOF
a
CMD b
