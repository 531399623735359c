module parley.dev/parley/hack/localcluster

go 1.27.0

toolchain go1.27.4
