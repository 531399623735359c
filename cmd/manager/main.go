// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Command manager runs Parley's controllers.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/net/http/httpproxy"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/controllers"
	"parley.dev/parley/controllers/generationpod"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/internal/kube/shard"
	"parley.dev/parley/internal/pods/placement"
	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/internal/pods/podstate"
	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/internal/telemetry/tracing"
	"parley.dev/parley/internal/text/printable"
	"parley.dev/parley/internal/workspace/template"
)

type flags struct {
	image, gatewayNamespace, gatewayAccount string
	metricsAddress, healthAddress           string
	leaderElect, tracePods                  bool
	recordings, userNamespaces, profiling   bool
	capacity, workers                       int
	start, idle                             time.Duration
	verbose                                 bool
	fileHosts, modelHosts, mcpHosts         []string
	loopback                                bool
	proxy                                   podspec.Proxy
	caBundle                                *v1alpha1.ConfigMapKeyReference
	advisorUses                             int
	agent                                   template.Placement
	scope                                   shard.Scope
	podLabels                               map[string]string
}

func main() {
	var f flags
	flag.StringVar(&f.image, "image", os.Getenv("PARLEY_IMAGE"), "image of the generation pods; default: $PARLEY_IMAGE")
	hostList(&f.fileHosts, "file-hosts", "`hosts` that generation pods may fetch files of messages from, separated by "+
		"commas, such as files.example.com,*.example.org; default: none")
	hostList(&f.modelHosts, "model-hosts", "`hosts` that generation pods may call models at, separated by commas, such "+
		"as api.anthropic.com,ollama.models:11434,*.openai.azure.com; default: all but loopback and link-local addresses "+
		"and metadata services")
	hostList(&f.mcpHosts, "mcp-hosts", "`hosts` that generation pods may call MCP servers at, separated by commas, such "+
		"as mcp.example.com,tools.mcp.svc:8080; default: all but loopback and link-local addresses and metadata services")
	flag.BoolVar(&f.loopback, "allow-loopback", false,
		"let generation pods call models and MCP servers at loopback addresses, such as those of a sidecar that was injected")
	f.proxyFlags()
	flag.IntVar(&f.advisorUses, "advisor-max-uses", -1, "how often a turn may ask the advisor at most, whatever chats "+
		"and their classes say; 0 switches the advisor off; -1: no bound")
	flag.StringVar(&f.gatewayNamespace, "gateway-namespace", envOr("POD_NAMESPACE", "parley-system"),
		"namespace of the gateways")
	flag.StringVar(&f.gatewayAccount, "gateway-account", "parley-gateway", "service account of the gateways")
	flag.StringVar(&f.metricsAddress, "metrics-address", ":8080", "where to serve Prometheus metrics; 0: nowhere")
	flag.StringVar(&f.healthAddress, "health-address", ":8081", "where to answer the kubelet's probes")
	flag.BoolVar(&f.leaderElect, "leader-elect", false,
		"let one of several replicas work at a time; needed for none, since every write is fenced")
	scopeFlags(&f.scope)
	flag.IntVar(&f.capacity, "pod-capacity", placement.DefaultCapacity, "how many chats a generation pod serves at once; "+
		"three times as many while another pod starts")
	flag.DurationVar(&f.start, "pod-start", podstate.DefaultStart,
		"how long a generation pod may take until it is ready, before its chats get another one")
	flag.DurationVar(&f.idle, "pod-idle", generationpod.DefaultIdle, "how long a generation pod without work is kept")
	flag.IntVar(&f.workers, "workers", 16, "how many chats, and how many messages, are reconciled at once")
	flag.Func("pod-labels", "further `labels` of generation pods, separated by commas, such as "+
		"azure.workload.identity/use=true; default: none", func(given string) (err error) {
		f.podLabels, err = podspec.ParseLabels(given)
		return err
	})
	flag.BoolVar(&f.tracePods, "trace-generation-pods", os.Getenv("PARLEY_TRACE_GENERATION_PODS") == "true",
		"hand the manager's OTEL_* settings on to generation pods, all but headers and certificates; default: "+
			"$PARLEY_TRACE_GENERATION_PODS")
	flag.BoolVar(&f.recordings, "recordings", true,
		"let generation pods record model calls where Chats and ChatModelConfigs ask for it; false: no calls are recorded")
	flag.BoolVar(&f.userNamespaces, "user-namespaces", false,
		"give generation pods users of their own (hostUsers: false); only where all nodes can do that, since they start "+
			"on no other")
	flag.StringVar((*string)(&f.agent), "workspace-agent", "",
		"how the agent comes into workspaces: ImageVolume or InitContainer; default: ImageVolume from Kubernetes 1.36 on")
	flag.BoolVar(&f.profiling, "profiling", false,
		"serve profiles of this program at the metrics address, and have generation pods serve theirs")
	flag.BoolVar(&f.verbose, "verbose", false, "log every transition of a chat and every write of its status")
	err := errors.Join(fromEnv("shard", "PARLEY_SHARD"), fromEnv("total-shards", "PARLEY_TOTAL_SHARDS"),
		fromEnv("namespaces", "PARLEY_NAMESPACES"))
	flag.Parse()
	if err == nil {
		err = run(ctrl.SetupSignalHandler(), f)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "manager:", err)
		os.Exit(1)
	}
}

// scopeFlags makes the flags that say which namespaces the manager works for.
func scopeFlags(to *shard.Scope) {
	flag.IntVar(&to.Index, "shard", 0,
		"which of the --total-shards parts of all namespaces this manager works for, from 0; default: $PARLEY_SHARD, or 0")
	flag.IntVar(&to.Total, "total-shards", 1,
		"into how many parts the namespaces are shared out, for as many managers; default: $PARLEY_TOTAL_SHARDS, or 1")
	flag.Func("namespaces", "`namespaces` that this manager is limited to, separated by commas, such as team-a,team-b; "+
		"empty: all; default: $PARLEY_NAMESPACES", func(given string) (err error) {
		to.Namespaces, err = shard.ParseNamespaces(given)
		return err
	})
}

// proxyFlags makes the flags about what generation pods call models, MCP servers and hosts of files through. Operators
// hand on what the environment of their own says, which installers of clusters with a proxy set.
func (f *flags) proxyFlags() {
	env := httpproxy.FromEnvironment()
	f.proxy = podspec.Proxy{HTTP: env.HTTPProxy, HTTPS: env.HTTPSProxy, Except: env.NoProxy}
	// Not the flags' defaults, which usages print: a URL can have a password.
	text(&f.proxy.HTTPS, "https-proxy", "`URL` of the proxy through which generation pods call https URLs of models, MCP "+
		"servers and files, such as http://proxy.example.com:3128; empty: none; default: $HTTPS_PROXY")
	text(&f.proxy.HTTP, "http-proxy", "`URL` of the proxy for http URLs; empty: none; default: $HTTP_PROXY")
	text(&f.proxy.Except, "no-proxy", "`hosts` that generation pods call without a proxy, separated by commas, such as "+
		".svc,.cluster.local,10.0.0.0/8; default: $NO_PROXY")
	flag.Func("ca-configmap", "`NAME` or NAME/KEY of a ConfigMap in the namespaces of chats with certificates of "+
		"authorities, in PEM, that generation pods trust for these calls in addition to those of the image; the default "+
		"KEY is "+podspec.DefaultCAKey, func(given string) (err error) {
		f.caBundle, err = podspec.ParseCABundle(given)
		return err
	})
}

// text makes a flag of a text.
func text(to *string, name, usage string) {
	flag.Func(name, usage, func(given string) error {
		*to = given
		return nil
	})
}

// hostList makes a flag of hosts that are separated by commas.
func hostList(to *[]string, name, usage string) {
	flag.Func(name, usage, func(given string) error {
		*to = listed(given)
		return nil
	})
}

// fromEnv sets a flag to what an environment variable says, if there is one. The command line comes after it. An empty
// one is no number: a pod has it where its label is missing that should say the number. An empty list of namespaces is
// all of them.
func fromEnv(name, variable string) error {
	value, there := os.LookupEnv(variable)
	if !there {
		return nil
	}
	if err := flag.Set(name, value); err != nil {
		return fmt.Errorf("$%s is %q: %w", variable, value, err)
	}
	return nil
}

func run(ctx context.Context, f flags) error {
	if err := f.check(); err != nil {
		return err
	}
	level := slog.LevelInfo
	if f.verbose {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewJSONHandler(printable.JSONWriter(os.Stderr), &slog.HandlerOptions{Level: level}))
	ctrl.SetLogger(logr.FromSlogHandler(log.Handler()))
	cfg, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the cluster: %w", err)
	}
	cfg = apiclient.WithoutProxy(cfg)
	about, err := aboutCluster(ctx, cfg)
	if err != nil {
		return err
	}
	tracer, err := tracing.New(ctx, tracing.Service{Name: "parley-manager", Namespace: os.Getenv("POD_NAMESPACE"),
		Pod: os.Getenv("POD_NAME")}, log)
	if err != nil {
		return err
	}
	defer tracer.Close(ctx)
	mgr, err := controllers.NewManager(ctx, cfg, f.options(), f.scope)
	if err != nil {
		return err
	}
	if err := controllers.AddPoliciesCheck(mgr, envOr("POD_NAMESPACE", "parley-system")); err != nil {
		return err
	}
	err = controllers.Setup(mgr, controllers.Options{
		Pods: f.pods(about.issuer), Tracer: tracer,
		GatewayNamespace: f.gatewayNamespace, PodCapacity: f.capacity, PodStart: f.start, PodIdle: f.idle, Workers: f.workers,
		Workspaces: template.Settings{Image: f.image, Placement: cmp.Or(f.agent, about.placement)}, Issuer: about.issuer,
		IssuerKeys: about.keys,
		Now:        time.Now,
		Scope:      f.scope,
		Metrics:    metrics.Registry,
	})
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// pods are the settings of generation pods.
func (f *flags) pods(issuer string) podspec.Settings {
	pods := podspec.Settings{
		Image: f.image, Issuer: issuer, FileHosts: f.fileHosts, ModelHosts: f.modelHosts, MCPHosts: f.mcpHosts,
		AllowLoopback:   f.loopback,
		Proxy:           f.proxy,
		CABundle:        f.caBundle,
		Capacity:        f.capacity,
		NoRecordings:    !f.recordings,
		UserNamespaces:  f.userNamespaces,
		Profiling:       f.profiling,
		Labels:          f.podLabels,
		GatewaySubjects: []string{"system:serviceaccount:" + f.gatewayNamespace + ":" + f.gatewayAccount},
	}
	if f.advisorUses >= 0 {
		pods.AdvisorUses = new(int32(f.advisorUses))
	}
	if f.tracePods {
		pods.Tracing = podspec.Tracing(os.Environ())
	}
	return pods
}

// options of the manager.
func (f *flags) options() ctrl.Options {
	return ctrl.Options{
		Metrics:                       f.metrics(),
		HealthProbeBindAddress:        f.healthAddress,
		LeaderElection:                f.leaderElect,
		LeaderElectionID:              f.scope.Lease(),
		LeaderElectionReleaseOnCancel: true,
	}
}

// metrics says where metrics are served, and profiles beside them.
func (f *flags) metrics() metricsserver.Options {
	o := metricsserver.Options{BindAddress: f.metricsAddress}
	if f.profiling {
		o.ExtraHandlers = telemetry.Profiles()
	}
	return o
}

// check refuses settings with which no chat would ever be answered.
func (f *flags) check() error {
	switch {
	case f.image == "":
		return errors.New("--image or $PARLEY_IMAGE must name the image of the generation pods")
	case f.scope.Validate() != nil:
		return f.scope.Validate()
	case f.proxy.Validate() != nil:
		return f.proxy.Validate()
	case f.start <= 0:
		return errors.New("--pod-start must be more than 0")
	case f.agent != "" && f.agent != template.ImageVolume && f.agent != template.InitContainer:
		return fmt.Errorf("--workspace-agent is %q: it must be ImageVolume or InitContainer", f.agent)
	}
	return nil
}

// listed splits a list at commas and spaces.
func listed(values string) []string {
	return strings.FieldsFunc(values, func(c rune) bool { return c == ',' || c == ' ' })
}

func envOr(name, fallback string) string {
	if v := os.Getenv(name); v != "" {
		return v
	}
	return fallback
}
