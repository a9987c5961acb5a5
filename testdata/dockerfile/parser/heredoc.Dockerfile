FROM scratch
RUN <<EOF
a
  EOF
# no comment
EOF
COPY <<one <<-two /dst/
1
one
	2
	two
ADD --chmod=644 <<three /dst/
3
three
RUN --network=none <<-"A B"
	a
	A B
RUN after
