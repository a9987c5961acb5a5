FROM scratch
RUN cat <<'A' > /x && python3 - <<-"B C" | tee 3<<D
a $x
A
	b
	B C
d
D
COPY <<one <<-two /dst/
1
one
	2
	two
ADD --chmod=644 << three /dst/
3
three
ONBUILD RUN <<EOF
e
EOF
RUN --mount=type=bind,source=x bash \
    -ex <<EOF && echo ${A:-b} "c $D" \
    'e'
f
EOF
RUN echo ${a:-b}<<EOF
RUN echo '<<EOF' "<<EOF" \<<EOF <<<EOF cat<<EOF
RUN ["cat", "<<EOF"]
CMD cat <<EOF
RUN cat <<EOF\ X
g
EOF X
RUN cat <<$y <<''
h
$y
RUN <<~EOF
  i
~EOF
RUN <<a <<b
a
b
