# The project's own local Kubernetes: what the integration tests, the end-to-end tests and the demo run on.
# Self-contained: include it from the top Makefile, or `make -f hack/cluster.mk cluster-up`.
#
# Set by the user, all optional:
#   CLUSTER_DIR         directory of the cluster (default .parley/cluster in the checkout)
#   CLUSTER_NODES       with how many nodes cluster-up starts it: 1 (default) or 2
#   CLUSTER_NETWORK     1: cluster-up starts it with Services, DNS, and enforced NetworkPolicies (builds more, one node only)
#   CLUSTER_IMAGES      image tars for cluster-load
#   CLUSTER_SUDO        how to become root for up, down and load (default: sudo, unless root already)
#   CLUSTER_ENV         variables for the cluster's programs, such as GOGC=400, when cluster-up starts them
#   KUBEBUILDER_ASSETS  a directory with etcd and kube-apiserver to use for the integration tests as it is
#
# For the including Makefile:
#   CLUSTER_KUBECONFIG  the kubeconfig after cluster-up
#   CLUSTER_BIN         directory of the finished programs (expands to a path; does not build)
#   CLUSTER_KUBECTL     the kubectl that belongs to the cluster
#   ENVTEST_ASSETS      value for KUBEBUILDER_ASSETS, valid after the target envtest-assets
#   DEVCLUSTER          the command with its flags, e.g. $(DEVCLUSTER) restart-apiserver
#   OCIPACK             the image packer (target $(OCIPACK) builds it)

CLUSTER_ROOT := $(abspath $(dir $(lastword $(MAKEFILE_LIST)))/..)
CLUSTER_SRC  := $(CLUSTER_ROOT)/hack/localcluster

include $(CLUSTER_ROOT)/hack/go.mk

# The Go release that go.mod names, whatever the machine has or pins: it comes as a module like any other.
export GOTOOLCHAIN := $(shell sed -n 's/^toolchain //p' $(CLUSTER_SRC)/go.mod)

CLUSTER_DIR        ?= $(CLUSTER_ROOT)/.parley/cluster
CLUSTER_NODES      ?= 1
CLUSTER_NETWORK    ?=
CLUSTER_ENV        ?=
CLUSTER_IMAGES     ?=
CLUSTER_SUDO       ?= $(shell [ "$$(id -u)" = 0 ] || command -v sudo)
CLUSTER_KUBECONFIG := $(CLUSTER_DIR)/kubeconfig

# Expanded once, when first used: computing the key takes a moment.
CLUSTER_BIN      = $(eval CLUSTER_BIN := $(shell $(CLUSTER_SRC)/build.sh --print all))$(CLUSTER_BIN)
CLUSTER_KUBECTL  = $(CLUSTER_BIN)/envtest/kubectl
# The packages that are still to be compiled for the cluster, with commas between them.
CLUSTER_MISSING  = $(shell $(CLUSTER_SRC)/build.sh --packages all | paste -sd, -)
CLUSTER_TOOLS   := $(CLUSTER_ROOT)/bin
DEVCLUSTER_BIN  := $(CLUSTER_TOOLS)/devcluster
OCIPACK         := $(CLUSTER_TOOLS)/ocipack
DEVCLUSTER       = $(DEVCLUSTER_BIN) -dir=$(CLUSTER_DIR) -bin=$(CLUSTER_BIN)

# A KUBEBUILDER_ASSETS that has what is needed wins.
CLUSTER_GIVEN_ASSETS := $(if $(and $(KUBEBUILDER_ASSETS),$(wildcard $(KUBEBUILDER_ASSETS)/etcd),$(wildcard $(KUBEBUILDER_ASSETS)/kube-apiserver)),$(abspath $(KUBEBUILDER_ASSETS)))
ENVTEST_ASSETS        = $(or $(CLUSTER_GIVEN_ASSETS),$(CLUSTER_BIN)/envtest)

.PHONY: cluster-binaries envtest-assets cluster-tools cluster-up cluster-down cluster-load cluster-status cluster-binaries-clean
.PHONY: $(DEVCLUSTER_BIN) $(OCIPACK)

cluster-binaries: ## Build the local cluster's programs (4 to 8 minutes the first time, then cached)
	@$(CLUSTER_SRC)/build.sh all >/dev/null

envtest-assets: ## Build etcd and kube-apiserver for the integration tests; prints their directory
ifeq ($(CLUSTER_GIVEN_ASSETS),)
	@$(CLUSTER_SRC)/build.sh envtest >/dev/null
endif
	@echo $(ENVTEST_ASSETS)

# Always asked, never stale: go build finds out in a moment that there is nothing to do.
$(DEVCLUSTER_BIN) $(OCIPACK):
	@cd $(CLUSTER_SRC) && go build -o $@ ./cmd/$(@F)

cluster-tools: $(DEVCLUSTER_BIN) $(OCIPACK)

cluster-up: cluster-binaries $(DEVCLUSTER_BIN) ## Start the local cluster, or leave it when it is up
	@network=$(if $(CLUSTER_NETWORK),$$($(CLUSTER_SRC)/network/build.sh)); \
	  $(CLUSTER_SUDO) env $(CLUSTER_ENV) $(DEVCLUSTER) -nodes=$(CLUSTER_NODES) -network="$$network" up

cluster-down: $(DEVCLUSTER_BIN) ## Stop the local cluster; leaves only its logs
	@$(CLUSTER_SUDO) $(DEVCLUSTER) down

cluster-load: $(DEVCLUSTER_BIN) ## Load the image tars named in CLUSTER_IMAGES
	@$(if $(CLUSTER_IMAGES),,$(error CLUSTER_IMAGES is empty: make cluster-load CLUSTER_IMAGES=bin/image.tar))
	@$(CLUSTER_SUDO) $(DEVCLUSTER) load $(CLUSTER_IMAGES)

cluster-status: $(DEVCLUSTER_BIN) ## Say what of the local cluster runs
	@$(CLUSTER_SUDO) $(DEVCLUSTER) status

cluster-binaries-clean: ## Remove the cached programs of this version of the cluster
	@rm -rf $(CLUSTER_BIN)
