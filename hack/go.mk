# The flags with which Go builds everything in this repository: programs, tests, what linters load, and the local cluster.
# They are the same everywhere because Go's build cache keeps a copy of each package for each set of flags.
#
#   -trimpath      other checkouts use the same cached packages and test results
#   -dwarf=false   no debug information: less to compile and to link
#   -pgo=off       a program's profile would compile its dependencies once more
#   -N -l          no optimization of Kubernetes' own packages: a quarter less to compile. Its API server spends 0.3 % of its
#                  time in them; what it is made of, as k8s.io/apiserver, is optimized, and so is Parley
#   -l             no inlining in large packages of types whose methods only call other packages: a quarter to a third less
#                  to compile
#   grpcnotrace    halves the generator: without it the linker keeps every method of every type
#
# cgo is off but for what needs it: runc and the race detector.
GO_BUILD_FLAGS := -trimpath -buildvcs=false -pgo=off -gcflags=all=-dwarf=false '-gcflags=k8s.io/kubernetes/...=-dwarf=false -N -l' '-gcflags=k8s.io/client-go/applyconfigurations/...=-dwarf=false -l' '-gcflags=k8s.io/client-go/informers/...=-dwarf=false -l' '-gcflags=k8s.io/client-go/kubernetes/...=-dwarf=false -l' '-gcflags=k8s.io/client-go/listers/...=-dwarf=false -l' '-gcflags=github.com/anthropics/anthropic-sdk-go=-dwarf=false -l' '-gcflags=github.com/openai/openai-go/v3=-dwarf=false -l' '-gcflags=github.com/openai/openai-go/v3/responses=-dwarf=false -l' '-gcflags=github.com/aws/aws-sdk-go-v2/service/s3=-dwarf=false -l' '-gcflags=github.com/apache/arrow-go/v18/...=-dwarf=false -l' -tags=grpcnotrace
export GOFLAGS := $(strip $(filter-out $(GO_BUILD_FLAGS),$(GOFLAGS)) $(GO_BUILD_FLAGS))
export CGO_ENABLED := 0

# Tests run without "go vet": the linters include it. A busy machine makes them slow: Go gives a package only 10 minutes.
# Linking takes most of the time of the unit tests, and a quarter less without symbols (-s). Stack traces need none.
GO_BENCH := go test -vet=off -ldflags=-s -timeout=30m
# Tests, and the compiler, collect garbage when the heap is five times as large as what is in use, not twice: a seventh less
# time. Benchmarks run as programs do.
GO_TEST := GOGC=400 $(GO_BENCH)
# The race detector needs a copy of every package. Without optimization (-N -l) these take a third less time to compile, and
# the tests no more, as the detector is what they wait for. Only Go's own packages would slow them.
RACE := -race '-gcflags=all=-dwarf=false -N -l' -gcflags=std=-dwarf=false
# At its end, a program waits for races that are still to be reported, by default for a second.
GO_TEST_RACE := CGO_ENABLED=1 GORACE=atexit_sleep_ms=100 $(GO_TEST) $(RACE)
