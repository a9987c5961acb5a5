apiVersion: v1
kind: Pod
metadata:
  name: x
