# Parley's two commands are "make demo" and "make test"; "make help" lists the rest.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GO_BUILD := go build -ldflags=-s
# "go tool" ignores GOFLAGS: it would compile these, and all that they import, once more.
CONTROLLER_GEN := go run sigs.k8s.io/controller-tools/cmd/controller-gen
# Linters need up to 10 GiB if they collect no garbage, and take a fifth less time then. They get half of what is free.
LINT_MEMORY = $(or $(shell awk '/^MemAvailable/ && $$2 > 8*1024*1024 { printf "%dKiB", $$2/2 }' /proc/meminfo 2>/dev/null),4GiB)
GOLANGCI_LINT = GOGC=off GOMEMLIMIT=$(LINT_MEMORY) $(LINTER)

# Everything that the project makes, but for the cluster's binaries in the user's cache, is in these two folders.
BIN := $(CURDIR)/bin
STATE := $(CURDIR)/.parley
LINTER := $(BIN)/golangci-lint

export IMAGE ?= parley.dev/parley:dev
# What workspaces in tests are made from: a shell.
export TOOLBOX_IMAGE ?= parley.dev/toolbox:dev
# And one with a Go toolchain, for the end-to-end tests.
export TOOLCHAIN_IMAGE ?= parley.dev/toolchain:dev
# And the MCP server that the end-to-end tests call.
export MCP_IMAGE ?= parley.dev/mcp-everything:dev
PROGRAMS := manager generator relay gateway workspace-agent
TEST_PROGRAMS := scripted-model bench
KUBECTL_CHAT := ./cmd/kubectl-chat
ON_LINUX := $(filter Linux,$(shell uname -s))
IMAGE_PACKAGES := $(addprefix ./cmd/,$(PROGRAMS)) $(addprefix ./test/,$(TEST_PROGRAMS))

include hack/cluster.mk

# Targets that need a cluster with nodes start the local one and load the image into it. With USE_CURRENT_CONTEXT=1 they use
# that of KUBECONFIG's current context instead, to which IMAGE has been brought, and neither start nor stop it.
ifdef USE_CURRENT_CONTEXT
ON_KUBECTL = $(or $(KUBECTL),kubectl)
ON_KUBECONFIG = $(STATE)/current.kubeconfig
ON_NODE =
ON_DEMO =
.PHONY: on-cluster
on-cluster: build
	@hack/current-context.sh $(ON_KUBECTL) $(ON_KUBECONFIG)
off_cluster =
.PHONY: on-cluster-toolchain
on-cluster-toolchain:
else
ON_KUBECTL = $(CLUSTER_KUBECTL)
ON_KUBECONFIG = $(CLUSTER_KUBECONFIG)
ON_NODE = DEVCLUSTER="$(DEVCLUSTER)" PARLEY_LOCAL_NODE=1
ON_DEMO = DEVCLUSTER="$(CLUSTER_SUDO) $(DEVCLUSTER)" DEMO_LOCAL=1
.PHONY: on-cluster
on-cluster: setup image toolbox cluster-up
	@$(CLUSTER_SUDO) $(DEVCLUSTER) load $(BIN)/parley.tar
	@$(CLUSTER_SUDO) $(DEVCLUSTER) load $(BIN)/toolbox.tar
ON_AGENT_SANDBOX = agent-sandbox
.PHONY: on-cluster-toolchain
on-cluster-toolchain: setup-tests on-cluster toolchain mcp-everything
	@$(CLUSTER_SUDO) $(DEVCLUSTER) load $(BIN)/toolchain.tar
	@$(CLUSTER_SUDO) $(DEVCLUSTER) load $(BIN)/mcp-everything.tar
off_cluster = @$(if $(KEEP_CLUSTER),,$(CLUSTER_SUDO) $(DEVCLUSTER) down)
endif

.PHONY: help
help: ## List the targets.
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sort | awk -F ':.*## ' '{printf "  %-18s %s\n", $$1, $$2}'

##@ The two commands

# The build of Parley shows the time that the cluster's programs take, too.
demo: export BUILD_PLAN := $(STATE)/build-plan.json
demo: BUILD_AHEAD = $(if $(ON_NODE),$(addprefix -plan=$(BUILD_PLAN) -after=40s -then=$(CLUSTER_SRC)/binaries=,$(CLUSTER_MISSING)))

.PHONY: demo
demo: demo-hint on-cluster ## Bring up a real cluster and run a chat in it. Needs root, or KUBECONFIG and USE_CURRENT_CONTEXT=1.
	@KUBECTL=$(ON_KUBECTL) KUBECONFIG=$(ON_KUBECONFIG) $(ON_DEMO) hack/demo.sh

.PHONY: demo-hint
demo-hint:
ifndef USE_CURRENT_CONTEXT
	@$(if $(CLUSTER_MISSING),cat hack/demo-hint.txt,true)
endif

.PHONY: test
test: setup-tests verify lint test-unit test-page test-integration test-crash test-gitops test-dashboards test-signin test-e2e soak-short ## Everything that must pass: generated files, linters, unit, page, integration and end-to-end tests.

##@ Building

.PHONY: setup
setup: ## Install the Debian packages that building the local cluster needs, if they are missing.
	@hack/setup.sh $(if $(CLUSTER_NETWORK),network)

.PHONY: setup-tests
setup-tests: ## Install those that the tests need, too: a browser, Node and npm.
	@hack/setup.sh tests

.PHONY: build
build: ## Build the programs of the image, for Linux, and kubectl chat, for this system, into bin/.
	@mkdir -p $(BIN)
	@go build -o $(BIN)/ ./hack/gobuild
	@GOOS=linux $(BIN)/gobuild -label=build $(BUILD_AHEAD) -- -ldflags=-s -o=$(BIN)/ $(IMAGE_PACKAGES) $(if $(ON_LINUX),$(KUBECTL_CHAT))
	@$(if $(ON_LINUX),,$(GO_BUILD) -o $(BIN)/ $(KUBECTL_CHAT))

.PHONY: image
image: build $(OCIPACK) ## Pack the programs into an image without Docker: bin/parley.tar.
	@$(OCIPACK) -o $(BIN)/parley.tar -ref $(IMAGE) -user 65532:65532 $(foreach p,$(PROGRAMS) $(TEST_PROGRAMS),$(BIN)/$(p)=/$(p))

# libraries_of are those that a program links, for ocipack.
libraries_of = $$(for library in $$(ldd $(1) | sed -n 's|^[^/]*\(/[^ ]*\) (.*|\1|p'); do \
  echo "$$(readlink -f $$library)=$$library"; done)

.PHONY: toolbox
toolbox: $(OCIPACK) ## Pack an image with a shell and git, for workspaces in tests: bin/toolbox.tar.
	@git=$$(readlink -f "$$(command -v git)"); \
	  $(OCIPACK) -o $(BIN)/toolbox.tar -ref $(TOOLBOX_IMAGE) -user 65532:65532 -env PATH=/bin /bin/busybox=/bin/sh \
	  "$$git"=/bin/git $(call libraries_of,"$$git")

# What the programs in the tests import is compiled once, and not in each workspace: that takes 20 s of a processor.
TOOLCHAIN_CACHE := $(BIN)/toolchain-cache
TOOLCHAIN_BUILT := bufio log net testing testing/internal/testdeps

.PHONY: toolchain
toolchain: $(OCIPACK) ## Pack an image with a shell and the Go toolchain, for workspaces in tests: bin/toolchain.tar.
	@GOCACHE=$(TOOLCHAIN_CACHE) GOFLAGS= go build $(TOOLCHAIN_BUILT)
	@root=$$(go env GOROOT); to=/usr/local/go; \
	  $(OCIPACK) -o $(BIN)/toolchain.tar -ref $(TOOLCHAIN_IMAGE) -user 65532:65532 -env PATH=$$to/bin:/bin /bin/busybox=/bin/sh \
	  $$root/VERSION=$$to/VERSION $$root/go.env=$$to/go.env $$root/bin=$$to/bin $$root/pkg=$$to/pkg $$root/src=$$to/src \
	  $(TOOLCHAIN_CACHE)=/usr/local/go-cache

# npm_ci installs what the lock in a folder names, unless it is there. Everything from npm is held to hashes by its lock.
npm_ci = cmp -s $(1)/package-lock.json $(1)/.installed || \
  { npm ci --prefix $(1) --ignore-scripts --no-audit --no-fund --loglevel=error && cp $(1)/package-lock.json $(1)/.installed; }

NODE := $(BIN)/node

# The Node.js that runs what the end-to-end tests take from npm. That of the machine runs npm alone.
.PHONY: node
node:
	@mkdir -p $(NODE) && cp hack/node/package*.json $(NODE)/
	@$(call npm_ci,$(NODE))

# MCP servers of npm with the libraries that Node links. Next to them is the server that the Go SDK is tested with, which
# knows no sessions, as its release is.
MCP_EVERYTHING := $(BIN)/mcp-everything
MCP_SDK_SERVER := github.com/modelcontextprotocol/go-sdk/conformance/everything-server

.PHONY: mcp-everything
mcp-everything: $(OCIPACK) node ## Pack an image with two MCP servers, of npm and of the Go SDK, for tests: bin/mcp-everything.tar.
	@$(GO_BUILD) -o $(BIN)/ $(MCP_SDK_SERVER)
	@mkdir -p $(MCP_EVERYTHING) && cp hack/mcp-everything/package*.json $(MCP_EVERYTHING)/
	@$(call npm_ci,$(MCP_EVERYTHING))
	@node=$$(readlink -f $(NODE)/node_modules/.bin/node); \
	  $(OCIPACK) -o $(BIN)/mcp-everything.tar -ref $(MCP_IMAGE) -user 65532:65532 -env PATH=/bin -workdir /srv "$$node"=/bin/node \
	  $(BIN)/everything-server=/bin/everything-server \
	  $(call libraries_of,"$$node") $(MCP_EVERYTHING)/node_modules=/srv/node_modules

MODEL_CLIENTS := $(BIN)/model-clients

# Clients of OpenAI and Anthropic as npm has them, which the end-to-end tests run.
.PHONY: model-clients
model-clients: node
	@mkdir -p $(MODEL_CLIENTS) && cp hack/model-clients/* $(MODEL_CLIENTS)/
	@$(call npm_ci,$(MODEL_CLIENTS))

AXE := $(BIN)/axe

.PHONY: axe
axe:
	@mkdir -p $(AXE) && cp hack/axe/package*.json $(AXE)/
	@$(call npm_ci,$(AXE))

# What gives the sandboxes of the end-to-end tests their pods, as its release is.
.PHONY: agent-sandbox
agent-sandbox:
	@mkdir -p $(BIN)
	@cd hack/agent-sandbox && $(GO_BUILD) -o $(BIN)/ sigs.k8s.io/agent-sandbox/cmd/agent-sandbox-controller

.PHONY: generate
generate: ## Generate deep copies, resource definitions, the pages of the reference, and the dashboard.
	$(CONTROLLER_GEN) object:headerFile=hack/boilerplate.go.txt crd:allowDangerousTypes=true paths=./api/... output:crd:dir=config/crd/bases
	go run ./hack/gen

.PHONY: versions
versions: ## Raise all modules of the repository to the same versions of their dependencies.
	go run ./hack/versions -write

.PHONY: fmt
fmt: ## Format the code.
	gofmt -w api cmd controllers internal test hack

##@ Releasing

# DOWNLOADS is the https:// URL below which the files of the release will be: without it, krew gets no manifest. KEY is a
# PEM file with the private ECDSA key that signs: without it, nothing is signed.
RELEASE := cd hack/release && go run . -root=$(CURDIR) -version='$(VERSION)' -registry='$(REGISTRY)'

.PHONY: release
release: ## Make a release in bin/release/VERSION. Needs VERSION=v1.2.3 and REGISTRY=ghcr.io/example; takes DOWNLOADS and KEY.
	@$(RELEASE) -out=$(BIN)/release/$(VERSION) -downloads='$(DOWNLOADS)' -key='$(KEY)'

.PHONY: release-push
release-push: ## Push the image of a release to REGISTRY, with the login of the Docker client's configuration.
	@$(RELEASE) -push=$(BIN)/release/$(VERSION)/images/parley $(if $(PLAIN_HTTP),-insecure)

# Go's test cache looks at no file outside of the test's own module, such as those of config/: these run each time.
GO_TEST_OUTSIDE := $(GO_TEST) -count=1

.PHONY: site
site: ## Build the site of the documentation in bin/site, with a folder for VERSION.
	@hack/setup.sh site
	hack/site/build.sh '$(or $(VERSION),dev)' $(BIN)/site

.PHONY: release-test
release-test: lint-modules ## Lint and test what makes a release, the chart, the site, and the alerts with promtool. Not in CI.
	@hack/setup.sh site
	@hack/setup.sh alerts
	cd hack/release && $(GOLANGCI_LINT) run && $(GO_TEST_OUTSIDE) ./...

.PHONY: release-check
release-check: ## Check a finished release: run its programs, also for other architectures, and make it again. Needs VERSION.
	@hack/setup.sh release
	cd hack/release && $(GO_TEST) -count=1 -v -run=^TestRelease . -release=$(BIN)/release/$(VERSION)

INSTALL := $(BIN)/install
# The newest version of the changelog, because a release has its notes.
INSTALL_VERSION = $(shell sed -n 's/^## \(v.*\)/\1/p; T; q' CHANGELOG.md)
ON_THE_NODE = $(if $(CLUSTER_SUDO),$(CLUSTER_SUDO) --preserve-env) $(DEVCLUSTER) exec

.PHONY: test-install
test-install: cluster-down on-cluster ## Make a release, and install it with kustomize and Helm on a fresh local cluster. Not in CI. Takes INSTALL_FLAGS.
	@hack/setup.sh install
	cd hack/release && $(GO_BUILD) -o $(INSTALL)/ . helm.sh/helm/v4/cmd/helm
	cd test/archive && $(GO_BUILD) -o $(INSTALL)/ ./s3server
	$(INSTALL)/release -root=$(CURDIR) -version=$(INSTALL_VERSION) -registry=registry.parley.test:5000/team \
	  -out=$(INSTALL)/$(INSTALL_VERSION) -only=linux/$(shell go env GOARCH)
	cd hack/release && RELEASE=$(INSTALL)/$(INSTALL_VERSION) MAKE_RELEASE=$(INSTALL)/release HELM=$(INSTALL)/helm \
	  S3_SERVER=$(INSTALL)/s3server KUBECTL=$(ON_KUBECTL) KUBECTL_CHAT=$(BIN)/kubectl-chat KUBECONFIG=$(ON_KUBECONFIG) \
	  $(GO_TEST) -count=1 -v -exec="$(ON_THE_NODE)" ./install $(INSTALL_FLAGS)
	$(off_cluster)

##@ Checking

.PHONY: verify
verify: ## Check that generated files and go.mod are fresh.
	hack/verify.sh

.PHONY: lint
lint: lint-product lint-modules ## Run the linters, "go vet" among them, on every module whose tests are in CI.

.PHONY: $(LINTER)
$(LINTER):
	@mkdir -p $(BIN) && hack/tools/build-linter.sh $@ $(STATE)/golangci-lint

.PHONY: lint-product
lint-product: $(LINTER)
	$(GOLANGCI_LINT) run
	cd $(CLUSTER_SRC) && $(GOLANGCI_LINT) run

# Modules with a few tests each, and thousands of packages that they import. Some linters analyse all of these, which takes
# nine tenths of the time: CI runs the others.
.PHONY: lint-modules lint-modules-fast
lint-modules-fast: LINT_FLAGS := --disable=bodyclose,contextcheck,modernize,nilerr,nilnesserr,noctx,staticcheck,unparam
lint-modules lint-modules-fast: $(LINTER)
	cd test/signin && $(GOLANGCI_LINT) run $(LINT_FLAGS)
	cd test/gitops && $(GOLANGCI_LINT) run $(LINT_FLAGS)
	cd test/dashboards && $(GOLANGCI_LINT) run $(LINT_FLAGS)

# It knows which target runs the tests of each package. PACKAGES limits test-unit, test-integration and test-crash to some
# packages, such as PACKAGES="internal/chat/plan api/v1beta1".
TESTPLAN := go run ./hack/testplan
PACKAGES ?=

# $(call go_test,LIST,COMMAND) tests the packages of a list of hack/testplan, unless there are none. What they import is
# compiled before: without garbage collection, which the tests would inherit, the compiler needs a seventh less time.
# The linters have compiled what is tested without the race detector.
go_test = packages=$$($(TESTPLAN) $(1) $(PACKAGES)); [ -z "$$packages" ] || { \
  $(if $(filter unit-race integration,$(1)),GOGC=off GOMEMLIMIT=3GiB CGO_ENABLED=1 go list $(RACE) -test -export -deps $$packages >/dev/null && )$(2) $$packages; }

# Some packages wait for a minute, without work: others are tested meanwhile.
.PHONY: test-unit
test-unit: ## Run the tests that need no cluster, also those of the local cluster itself; with the race detector where it can find something.
	$(call go_test,unit-race,$(GO_TEST_RACE) -p=4 -parallel=4)
	$(call go_test,unit-plain,$(GO_TEST))
	$(call go_test,cluster,cd $(CLUSTER_SRC) && $(GO_TEST_RACE))

.PHONY: test-changed
test-changed: ## Run what a change since BASE can affect, uncommitted and untracked files included: tests, verify and lint.
	@arguments=$$($(TESTPLAN) changed $(BASE)); [ -z "$$arguments" ] || { \
	  mapfile -t arguments <<< "$$arguments"; $(MAKE) --no-print-directory "$${arguments[@]}"; }

.PHONY: lines
lines: ## Print the size of the project: lines of the product and of its tests, words of documentation.
	@hack/lines.sh

# The packages that ask for it share one control plane (testcluster.RunShared); the others start their own.
# Tests wait more than they compute, so that more of them run at once than there are cores.
SHARED_CLUSTER := go run ./test/kit/sharedcluster env

.PHONY: test-page
test-page: setup-tests axe envtest-assets ## Look at every state of the page in a browser, and at long chats before a real gateway and API server.
	$(GO_TEST) ./test/page
	KUBEBUILDER_ASSETS=$(ENVTEST_ASSETS) $(GO_TEST) ./test/gateway

# Its keys leave the page after the last element, its dates have no locale of a test's choice, and it answers no requests.
.PHONY: test-firefox
test-firefox: setup-tests axe ## The tests of the page in Firefox, but for those that its remote control cannot do.
	@hack/setup.sh firefox
	PAGE_BROWSER=firefox $(GO_TEST) -count=1 ./test/page \
	  -skip 'TestEverythingCanBeDoneByKeys|TestShareDialogWritesTheReadersThatItShows|TestReadersOfAChatAreNoWarning'

.PHONY: screenshots
screenshots: setup-tests axe ## Write the pictures of the page in docs/.
	@mkdir -p docs/screenshots
	PAGE_SCREENSHOTS=$(CURDIR)/docs/screenshots $(GO_TEST) -count=1 ./test/page

.PHONY: test-integration
test-integration: envtest-assets ## Run the tests that need a kube-apiserver and etcd, with the race detector.
	$(call go_test,integration,KUBEBUILDER_ASSETS=$(ENVTEST_ASSETS) $(SHARED_CLUSTER) $(GO_TEST_RACE) -parallel=8)

# Versions of Kubernetes in addition to that of all other tests: see docs/reference/compatibility.md. Go's cache of test results does
# not know which one a shared control plane has. What is skipped is printed.
KUBERNETES_VERSIONS ?= 1.33.13

.PHONY: test-versions
test-versions: ## Run the integration tests against KUBERNETES_VERSIONS, built from Go modules. Not in CI.
	@for version in $(KUBERNETES_VERSIONS); do \
	  assets=$$(hack/kubernetes-version.sh $$version); \
	  echo "Kubernetes $$version"; \
	  KUBEBUILDER_ASSETS=$$assets $(SHARED_CLUSTER) $(GO_TEST) -count=1 -v -parallel=8 \
	    $$($(TESTPLAN) integration $(PACKAGES)) | grep -vE '^(=== |PASS| *--- PASS)'; \
	done

.PHONY: test-mutants
test-mutants: ## Put known faults into the core, one after another, and check that its unit tests find each.
	go run ./test/mutants

.PHONY: test-crash
test-crash: envtest-assets ## Let the manager fail at every write, compare it with a model of the whole API, play a turn of 200 steps, and count what a start and what shards ask.
	$(call go_test,crash,KUBEBUILDER_ASSETS=$(ENVTEST_ASSETS) $(GO_TEST))

# EXPLORE_FLAGS are those of test/model: -budget=1h, -seed, -replay, -managers. Where managers are killed, fewer sequences
# run at once: what a new one finds waits behind all that comes later, as long as that is more than it can do.
EXPLORE_FLAGS ?= -budget=10m -life=40s -workers=16

.PHONY: explore
explore: envtest-assets ## Draw new random conversations, and compare the operator with the model of the whole API.
	KUBEBUILDER_ASSETS=$(ENVTEST_ASSETS) $(GO_TEST) -v -count=1 -timeout=0 -run=TestTheOperatorDoesWhatTheModelSays$$ ./test/model -args -seed=0 -sequences=0 $(EXPLORE_FLAGS)

.PHONY: test-gitops
test-gitops: envtest-assets ## Drive Flux's and Argo CD's own engines against the operator. A module of its own.
	cd test/gitops && KUBEBUILDER_ASSETS=$(ENVTEST_ASSETS) $(GO_TEST_OUTSIDE) ./...

.PHONY: test-archive
test-archive: envtest-assets $(LINTER) ## Archive chats to an S3 server that verifies signatures and checksums. A module of its own. Not in CI.
	cd test/archive && $(GOLANGCI_LINT) run && KUBEBUILDER_ASSETS=$(ENVTEST_ASSETS) $(GO_TEST_OUTSIDE) ./...

.PHONY: test-signin
test-signin: setup-tests envtest-assets ## Sign in to the page with a real OpenID provider. A module of its own.
	cd test/signin && KUBEBUILDER_ASSETS=$(ENVTEST_ASSETS) $(GO_TEST_OUTSIDE) ./...

# What a dashboard may say, as Grafana's own types of npm have it. Grafana itself is not run.
GRAFANA := $(BIN)/grafana

.PHONY: grafana-schema
grafana-schema:
	@mkdir -p $(GRAFANA) && cp hack/grafana/* $(GRAFANA)/
	@$(call npm_ci,$(GRAFANA))
	@{ cat hack/grafana/dashboard.ts; sed 's/"mode": "absolute"/"mode": ThresholdsMode.Absolute/' config/grafana/parley.json; } \
	  > $(GRAFANA)/dashboard.ts && cd $(GRAFANA) && node_modules/.bin/tsc

.PHONY: test-dashboards
test-dashboards: setup-tests envtest-assets grafana-schema ## Hold what Argo CD, kube-state-metrics and Grafana show against a kube-apiserver. A module of its own.
	cd test/dashboards && KUBEBUILDER_ASSETS=$(ENVTEST_ASSETS) $(GO_TEST_OUTSIDE) ./...

HEADLAMP := $(BIN)/headlamp/parley-headlamp

# Not part of "make test": its packages take 853 MB. The lock leaves out packages for other systems that the kit names as
# optional, which "npm ci" would refuse; "install" takes the versions and hashes of all others from it.
.PHONY: headlamp
headlamp: ## Install, check, test and build the plug-in for Headlamp: bin/headlamp/parley-headlamp.
	@cd plugins/headlamp && { cmp -s package-lock.json node_modules/.installed || \
	  { npm install --no-save --ignore-scripts --no-audit --no-fund --loglevel=error && \
	    cp package-lock.json node_modules/.installed; }; }
	cd plugins/headlamp && npm run format -- --check && npm run lint && npm run tsc && CI=1 npm test && npm run build
	@mkdir -p $(HEADLAMP) && cp plugins/headlamp/dist/main.js plugins/headlamp/package.json $(HEADLAMP)/

# What the end-to-end tests and those of the page and of dashboards need besides the image. It takes a minute or two, half of
# it downloads.
.PHONY: e2e-tools
e2e-tools: toolchain mcp-everything model-clients $(ON_AGENT_SANDBOX) axe grafana-schema

# The cluster's programs for tests that run in CI, as the tests themselves: see GO_TEST.
test-e2e soak-short: export CLUSTER_ENV := GOGC=400 GOMEMLIMIT=2GiB

.PHONY: test-e2e
test-e2e: on-cluster on-cluster-toolchain $(ON_AGENT_SANDBOX) model-clients axe ## Run the end-to-end tests on a real cluster with real pods.
	hack/deploy.sh $(ON_KUBECTL) $(ON_KUBECONFIG)
	$(ON_NODE) KUBECONFIG=$(ON_KUBECONFIG) KUBECTL=$(ON_KUBECTL) PARLEY_BIN=$(BIN) MODEL_CLIENTS=$(MODEL_CLIENTS) \
	  PATH=$(NODE)/node_modules/.bin:$$PATH $(GO_TEST) -timeout=45m -count=1 -parallel 4 ./test/e2e/... $(E2E_FLAGS)
	$(off_cluster)

.PHONY: test-drain
test-drain: CLUSTER_NODES := 2
test-drain: on-cluster ## Drain one of two nodes of the local cluster while chats are answered. Not in CI.
	@hack/deploy.sh $(ON_KUBECTL) $(ON_KUBECONFIG)
	$(ON_NODE) KUBECONFIG=$(ON_KUBECONFIG) KUBECTL=$(ON_KUBECTL) PARLEY_BIN=$(BIN) \
	  $(GO_TEST) -count=1 -v -run=TestDrain ./test/e2e
	$(off_cluster)

.PHONY: test-network
test-network: CLUSTER_NETWORK := 1
test-network: on-cluster $(LINTER) ## Test who reaches whom on a local cluster with Services, DNS, and enforced NetworkPolicies. Not in CI.
	cd $(CLUSTER_SRC)/network && go mod tidy -diff && $(GOLANGCI_LINT) run
	@hack/deploy.sh $(ON_KUBECTL) $(ON_KUBECONFIG)
	CLUSTER_EXEC="$(ON_THE_NODE)" KUBECONFIG=$(ON_KUBECONFIG) KUBECTL=$(ON_KUBECTL) PARLEY_BIN=$(BIN) \
	  $(GO_TEST) -count=1 -v -run=TestNetwork ./test/e2e
	$(off_cluster)

# SOAK_FLAGS are those of test/soak; the short form is what "make test" runs.
SOAK_SHORT := --chats=12 --for=50s --every=5s --follow=3 --settle=2m

.PHONY: soak
soak: on-cluster ## Let 50 chats talk for 10 minutes while everything under them is killed, and check that nothing was lost.
	@hack/deploy.sh $(ON_KUBECTL) $(ON_KUBECONFIG)
	@$(ON_NODE) hack/soak.sh $(ON_KUBECTL) $(ON_KUBECONFIG) $(SOAK_FLAGS)
	$(off_cluster)

.PHONY: soak-short
soak-short: ## The same for 12 chats and less than a minute, and then test-upgrade-short in the same cluster.
	@$(MAKE) --no-print-directory soak SOAK_FLAGS="$(SOAK_SHORT)" KEEP_CLUSTER=1
	@$(MAKE) --no-print-directory test-upgrade-short KEEP_CLUSTER=1
	$(off_cluster)

# UPGRADE_FLAGS are those of test/soak. For calls of ten minutes: --longest=10m --for=12m.
UPGRADE_FLAGS ?= --chats=100 --for=3m --every=20s --follow=10 --longest=100s --max-gap=5s
UPGRADE_SHORT := --chats=12 --for=50s --every=5s --follow=4 --longest=40s --settle=2m

.PHONY: test-upgrade
test-upgrade: on-cluster ## Upgrade from the version in hack/release/baseline on the local cluster while 100 chats talk, run commands and start sub-chats, with mixed versions. Not in CI.
	@[ -z "$(USE_CURRENT_CONTEXT)" ] || { echo "$@ replaces Parley in the cluster: it uses the local one only" >&2; exit 1; }
	@DEVCLUSTER="$(CLUSTER_SUDO) $(DEVCLUSTER)" hack/upgrade.sh $(ON_KUBECTL) $(ON_KUBECONFIG) $(UPGRADE_FLAGS)
	$(off_cluster)

.PHONY: test-upgrade-short
test-upgrade-short: ## The same for 12 chats and about a minute, if the checkout has the commit of that version.
	@if [ -z "$(USE_CURRENT_CONTEXT)" ] && git cat-file -e "$$(cat hack/release/baseline)^{commit}" 2>/dev/null; then \
	  $(MAKE) --no-print-directory test-upgrade UPGRADE_FLAGS="$(UPGRADE_SHORT)"; \
	else \
	  echo 'SKIPPED: no upgrade was tested. It needs the local cluster, and the commit in hack/release/baseline.'; \
	fi

.PHONY: bench-streams
bench-streams: envtest-assets ## Measure what a part costs a generation pod with 200 streams, and the model alone: bin/bench-generator.json.
	@mkdir -p $(BIN)
	KUBEBUILDER_ASSETS=$(ENVTEST_ASSETS) BENCH_OUT=$(BIN)/bench-generator.json $(GO_BENCH) -run='^$$' -bench=Streams -benchtime=1x ./internal/generation/runner

.PHONY: bench-gateway
bench-gateway: envtest-assets ## Measure 1000 streams at one gateway, how late parts come, and what it adds to sending a message: bin/bench-gateway.json.
	@mkdir -p $(BIN)
	KUBEBUILDER_ASSETS=$(ENVTEST_ASSETS) BENCH_OUT=$(BIN)/bench-gateway.json $(GO_BENCH) -run='^$$' -bench=. -benchtime=1x ./test/gateway

# Without the garbage collector, whose turns would come upon one write or the other.
.PHONY: bench-writes
bench-writes: envtest-assets ## Measure what the writes of a turn cost the API server, with and without policies, rules and schemas: bin/bench-writes.json.
	@mkdir -p $(BIN)
	GOGC=off KUBEBUILDER_ASSETS=$(ENVTEST_ASSETS) BENCH_OUT=$(BIN)/bench-writes.json $(GO_BENCH) -run='^$$' -bench=Writes -benchtime=1x ./test/admission

# How many chats at rest bench-memory makes, of 20 messages of 4 KiB each: 10000 need 2 GB of disk and some minutes.
BENCH_CHATS ?= 1000

.PHONY: bench-memory
bench-memory: envtest-assets ## Measure what chats at rest cost the manager, and its start with them: bin/bench-manager.json.
	@mkdir -p $(BIN)
	KUBEBUILDER_ASSETS=$(ENVTEST_ASSETS) BENCH_OUT=$(BIN)/bench-manager.json $(GO_BENCH) -timeout 1h -run='^$$' -bench=Manager -benchtime=1x ./test/memory -chats=$(BENCH_CHATS)

.PHONY: bench-search
bench-search: envtest-assets ## Measure a search in the messages of chats at rest (BENCH_CHATS): bin/bench-search.json.
	@mkdir -p $(BIN)
	KUBEBUILDER_ASSETS=$(ENVTEST_ASSETS) BENCH_OUT=$(BIN)/bench-search.json $(GO_BENCH) -timeout 1h -run='^$$' -bench=Search -benchtime=1x ./test/memory -chats=$(BENCH_CHATS)

.PHONY: bench-deletion
bench-deletion: envtest-assets ## Measure how fast messages go whose chats are deleted, beside a kind without schema: bin/bench-deletion.json.
	@mkdir -p $(BIN)
	KUBEBUILDER_ASSETS=$(ENVTEST_ASSETS) BENCH_OUT=$(BIN)/bench-deletion.json $(GO_BENCH) -timeout 1h -run='^$$' -bench=Deletion -benchtime=1x ./test/memory

.PHONY: bench
bench: $(if $(USE_CURRENT_CONTEXT),,setup bench-streams bench-gateway bench-writes bench-memory bench-deletion) on-cluster ## Measure latency, throughput, writes and memory on a real cluster: a table, and bin/bench.json.
	@hack/deploy.sh $(ON_KUBECTL) $(ON_KUBECONFIG)
	@hack/bench.sh $(ON_KUBECTL) $(ON_KUBECONFIG) $(BENCH_FLAGS)

# The short form, of less than three minutes: SCALE_FLAGS="-scale-chats=1000 -scale-namespaces=100 -turns=30".
SCALE_FLAGS ?= -scale-chats=10000

.PHONY: bench-scale
bench-scale: on-cluster ## Measure a real cluster of 10,000 chats, one of 1,000 namespaces, fairness, and a pod of 500 chats: bin/bench-scale.json.
	@hack/deploy.sh $(ON_KUBECTL) $(ON_KUBECONFIG)
	@BENCH_OUT=bin/bench-scale.json hack/bench.sh $(ON_KUBECTL) $(ON_KUBECONFIG) $(SCALE_FLAGS)

.PHONY: profile
profile: on-cluster ## Profile the API server, etcd and every program of Parley on the local cluster while 100 chats are busy: bin/profiles/.
	@hack/deploy.sh $(ON_KUBECTL) $(ON_KUBECONFIG)
	@hack/profile.sh $(ON_KUBECTL) $(ON_KUBECONFIG)

##@ Cleaning

.PHONY: clean
clean: cluster-down ## Stop the local cluster and remove everything that the project made.
	rm -rf $(BIN) $(STATE) plugins/headlamp/node_modules plugins/headlamp/dist
