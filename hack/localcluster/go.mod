module parley.dev/parley/hack/localcluster

go 1.26.0
