FROM scratch
RUN cat <<EOF && echo it's
RUN cat <<EOF ${x,,}
RUN cat <<EOF ${#x}
RUN cat <<EOF ${x:0:1} ${x/a/b} ${x%%c}
a
EOF
