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

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/go-logr/logr"
	_ "golang.org/x/crypto/x509roots/fallback" // for images without authorities, such as that of "make image"
	"golang.org/x/net/http/httpproxy"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"parley.dev/parley/controllers"
	"parley.dev/parley/controllers/generationpod"
	"parley.dev/parley/internal/archive"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/internal/kube/shard"
	"parley.dev/parley/internal/pods/placement"
	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/internal/pods/podstate"
	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/internal/telemetry/tracing"
	"parley.dev/parley/internal/text/version"
	"parley.dev/parley/internal/workspace/template"
)

// flags are the settings of the command line.
type flags struct {
	manager                        ctrl.Options
	controllers                    controllers.Options
	gatewayAccount                 string
	recordings, tracePods, verbose bool
	profiling, leaderElect         bool
	advisorUses                    int
	archiveURL, gatewayURL         string
}

func main() {
	_, _ = memlimit.Set() // Nine tenths of the container's memory limit; without one there is none.
	var f flags
	o, pods := &f.controllers, &f.controllers.Pods
	flag.StringVar(&pods.Image, "image", os.Getenv("PARLEY_IMAGE"), "image of the generation pods; default: $PARLEY_IMAGE")
	hostList(&pods.FileHosts, "file-hosts", "`hosts` that generation pods may fetch files of messages from, separated by "+
		"commas, such as files.example.com,*.example.org; default: none")
	hostList(&pods.ModelHosts, "model-hosts",
		"`hosts` that generation pods may call models at, separated by commas, such "+
			"as api.anthropic.com,ollama.models:11434,*.openai.azure.com; default: all but loopback and link-local addresses "+
			"and metadata services")
	hostList(&pods.MCPHosts, "mcp-hosts",
		"`hosts` that generation pods may call MCP servers at, separated by commas, such "+
			"as mcp.example.com,tools.mcp.svc:8080; default: all but loopback and link-local addresses and metadata services")
	flag.BoolVar(&pods.AllowLoopback, "allow-loopback", false,
		"let generation pods call models and MCP servers at loopback addresses, such as those of a sidecar that was injected")
	proxyFlags(pods)
	flag.IntVar(&f.advisorUses, "advisor-max-uses", -1, "how often a turn may ask the advisor at most, whatever chats "+
		"and their classes say; 0 switches the advisor off; -1: no bound")
	flag.StringVar(&o.GatewayNamespace, "gateway-namespace", envOr("POD_NAMESPACE", "parley-system"),
		"namespace of the gateways")
	flag.StringVar(&f.gatewayAccount, "gateway-account", "parley-gateway", "service account of the gateways")
	flag.StringVar(&f.manager.Metrics.BindAddress, "metrics-address", ":8080",
		"where to serve Prometheus metrics; 0: nowhere")
	flag.StringVar(&f.manager.HealthProbeBindAddress, "health-address", ":8081", "where to answer the kubelet's probes")
	flag.BoolVar(&f.leaderElect, "leader-elect", false,
		"let one of several replicas work at a time; the others wait with full caches")
	scopeFlags(&o.Scope)
	flag.IntVar(&pods.Capacity, "pod-capacity", placement.DefaultCapacity,
		"how many chats a generation pod serves at once; three times as many while another pod starts")
	flag.DurationVar(&o.PodStart, "pod-start", podstate.DefaultStart,
		"how long a generation pod may take until it is ready, before its chats get another one")
	flag.DurationVar(&o.PodIdle, "pod-idle", generationpod.DefaultIdle, "how long a generation pod without work is kept")
	flag.IntVar(&o.Workers, "workers", 16, "how many chats, and how many messages, are reconciled at once")
	flag.Func("pods-config", "`file` with labels, pull secrets, scheduling and resources of generation pods and "+
		"workspaces, in YAML; read once, at the start; default: none", func(file string) error {
		return readOptions(file, o)
	})
	flag.BoolVar(&f.tracePods, "trace-generation-pods", os.Getenv("PARLEY_TRACE_GENERATION_PODS") == "true",
		"hand the manager's OTEL_* settings on to generation pods, all but headers and certificates; default: "+
			"$PARLEY_TRACE_GENERATION_PODS")
	flag.BoolVar(&f.recordings, "recordings", true,
		"let generation pods record model calls where Chats and ChatModelConfigs ask for it; false: no calls are recorded")
	flag.BoolVar(&pods.UserNamespaces, "user-namespaces", false,
		"give generation pods users of their own (hostUsers: false); only where all nodes can do that, since they start "+
			"on no other")
	flag.StringVar((*string)(&o.Workspaces.Placement), "workspace-agent", "",
		"how the agent comes into workspaces: ImageVolume or InitContainer; default: ImageVolume from Kubernetes 1.36 on")
	archiveFlags(&f)
	debugFlags(&f)
	err := errors.Join(fromEnv("shard", "PARLEY_SHARD"), fromEnv("total-shards", "PARLEY_TOTAL_SHARDS"),
		fromEnv("namespaces", "PARLEY_NAMESPACES"), fromEnv("archive-url", "PARLEY_ARCHIVE_URL"))
	version.AddFlag(flag.CommandLine, "manager")
	flag.Parse()
	if err == nil {
		err = run(ctrl.SetupSignalHandler(), f)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "manager:", err)
		os.Exit(1)
	}
}

// readOptions reads the file of --pods-config.
func readOptions(file string, to *controllers.Options) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	options, err := podspec.ParseOptions(text)
	to.Pods.Options, to.Workspaces.Options = options.Generation, options.Workspaces
	return err
}

// scopeFlags makes the flags that say which namespaces the manager works for.
func scopeFlags(to *shard.Scope) {
	flag.IntVar(&to.Index, "shard", 0,
		"which of the --total-shards parts of all namespaces this manager works for, from 0; default: $PARLEY_SHARD, or 0")
	flag.IntVar(&to.Total, "total-shards", 1,
		"into how many parts the namespaces are shared out, for as many managers; default: $PARLEY_TOTAL_SHARDS, or 1")
	flag.Func("namespaces", "`namespaces` that this manager is limited to, separated by commas, such as team-a,team-b; "+
		"empty: all; default: $PARLEY_NAMESPACES", func(value string) (err error) {
		to.Namespaces, err = shard.ParseNamespaces(value)
		return err
	})
}

// proxyFlags makes the flags about what generation pods call models, MCP servers and hosts of files through. Operators
// hand on what the environment of their own says, which installers of clusters with a proxy set.
func proxyFlags(pods *podspec.Settings) {
	env := httpproxy.FromEnvironment()
	pods.Proxy = podspec.Proxy{HTTP: env.HTTPProxy, HTTPS: env.HTTPSProxy, Except: env.NoProxy}
	// Not the flags' defaults, which usages print: a URL can have a password.
	text(&pods.Proxy.HTTPS, "https-proxy",
		"`URL` of the proxy through which generation pods call https URLs of models, MCP "+
			"servers and files, such as http://proxy.example.com:3128; empty: none; default: $HTTPS_PROXY")
	text(&pods.Proxy.HTTP, "http-proxy", "`URL` of the proxy for http URLs; empty: none; default: $HTTP_PROXY")
	text(&pods.Proxy.Except, "no-proxy",
		"`hosts` that generation pods call without a proxy, separated by commas, such as "+
			".svc,.cluster.local,10.0.0.0/8; default: $NO_PROXY")
	flag.Func("ca-configmap", "`NAME` or NAME/KEY of a ConfigMap in the namespaces of chats with certificates of "+
		"authorities, in PEM, that generation pods trust for these calls in addition to those of the image; the default "+
		"KEY is "+podspec.DefaultCAKey, func(value string) (err error) {
		pods.CABundle, err = podspec.ParseCABundle(value)
		return err
	})
}

// archiveFlags makes the flags about the object storage.
func archiveFlags(f *flags) {
	text(&f.archiveURL, "archive-url", "`URL` of the bucket that chats are archived to before their retention deletes "+
		"them, and that has the files of chats, such as s3://bucket?region=eu-central-1 or azblob://container; default: "+
		"$PARLEY_ARCHIVE_URL")
	flag.StringVar(&f.gatewayURL, "gateway-url", "", "`URL` at which generation pods read stored files from the gateway, "+
		"with --archive-url; default: http://parley-gateway.NAMESPACE.svc, with that of --gateway-namespace")
}

// debugFlags makes the flags that show what the manager does.
func debugFlags(f *flags) {
	flag.BoolVar(&f.profiling, "profiling", false,
		"serve profiles of this program at the metrics address, and have generation pods serve theirs")
	flag.BoolVar(&f.verbose, "verbose", false, "log every transition of a chat and every write of its status")
}

// text makes a flag of a text.
func text(to *string, name, usage string) {
	flag.Func(name, usage, func(value string) error {
		*to = value
		return nil
	})
}

// hostList makes a flag of hosts that are separated by commas.
func hostList(to *[]string, name, usage string) {
	flag.Func(name, usage, func(value string) error {
		*to = strings.FieldsFunc(value, func(c rune) bool { return c == ',' || c == ' ' })
		return nil
	})
}

// fromEnv sets a flag from an environment variable, if it is set; the command line overrides it. An empty number is an
// error: a pod has it if the label with the number is missing. An empty list of namespaces stands for all.
func fromEnv(name, variable string) error {
	value, ok := os.LookupEnv(variable)
	if !ok {
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
	log := apiclient.NewLogger(os.Stderr, level)
	ctrl.SetLogger(logr.FromSlogHandler(log.Handler()))
	cfg, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("finding the cluster: %w", err)
	}
	cfg = apiclient.InCluster(cfg)
	cluster, err := readCluster(ctx, cfg)
	if err != nil {
		return err
	}
	tracer, err := tracing.New(ctx, tracing.Service{Name: "parley-manager", Namespace: os.Getenv("POD_NAMESPACE"),
		Pod: os.Getenv("POD_NAME")}, log)
	if err != nil {
		return err
	}
	defer tracer.Close(ctx)
	f.complete(cluster)
	f.controllers.Tracer = tracer
	if f.controllers.Archive, err = archive.Open(ctx, f.archiveURL, time.Now); err != nil {
		return err
	}
	mgr, err := f.newManager(ctx, cfg)
	if err != nil {
		return err
	}
	if err := controllers.Setup(mgr, f.controllers); err != nil {
		return err
	}
	return mgr.Start(ctx)
}

// newManager returns the manager without controllers.
func (f *flags) newManager(ctx context.Context, cfg *rest.Config) (ctrl.Manager, error) {
	namespace := envOr("POD_NAMESPACE", "parley-system")
	if f.leaderElect { // The lease is that of the whole list.
		if err := controllers.ElectLeader(&f.controllers, cfg, namespace); err != nil {
			return nil, err
		}
	}
	scope, omitted, err := controllers.Readable(ctx, cfg, f.controllers.Scope)
	if err != nil {
		return nil, err
	}
	f.controllers.Scope = scope
	mgr, err := controllers.NewManager(ctx, cfg, f.manager, scope)
	if err != nil {
		return nil, err
	}
	if len(scope.Namespaces) > 0 {
		namespace = scope.Namespaces[0] // The manager has its rights there.
	}
	return mgr, errors.Join(controllers.AddPoliciesCheck(mgr, namespace, metrics.Registry),
		controllers.AddReadableCheck(mgr, omitted))
}

// complete sets what follows from other flags, the environment and the cluster.
func (f *flags) complete(cluster *clusterFacts) {
	o := &f.controllers
	o.Workspaces.Image, o.Workspaces.Placement = o.Pods.Image, cmp.Or(o.Workspaces.Placement, cluster.placement)
	o.Workspaces.Proxy, o.Workspaces.CABundle = o.Pods.Proxy, o.Pods.CABundle
	o.IssuerKeys, o.Metrics, o.Now = cluster.keys, metrics.Registry, time.Now
	o.Pods.Issuer, o.Pods.NoRecordings, o.Pods.Profiling = cluster.issuer, !f.recordings, f.profiling
	o.Pods.GatewaySubjects = []string{"system:serviceaccount:" + o.GatewayNamespace + ":" + f.gatewayAccount}
	if f.archiveURL != "" {
		o.Pods.GatewayURL = cmp.Or(f.gatewayURL, "http://parley-gateway."+o.GatewayNamespace+".svc")
	}
	if f.advisorUses >= 0 {
		o.Pods.AdvisorUses = new(int32(f.advisorUses))
	}
	if f.tracePods {
		o.Pods.Tracing = podspec.Tracing(os.Environ())
	}
	if f.profiling {
		f.manager.Metrics.ExtraHandlers = telemetry.Profiles()
	}
}

// check refuses arguments that are no flags, and settings with which no chat would ever be answered.
func (f *flags) check() error {
	o := &f.controllers
	if flag.NArg() > 0 { // The flags behind it are not read.
		return fmt.Errorf("unexpected argument %q: a flag and its value are joined by =", flag.Arg(0))
	}
	if o.Pods.Image == "" {
		return errors.New("--image or $PARLEY_IMAGE must name the image of the generation pods")
	}
	if err := cmp.Or(o.Scope.Validate(), o.Pods.Proxy.Validate()); err != nil {
		return err
	}
	if o.PodStart <= 0 {
		return errors.New("--pod-start must be more than 0")
	}
	if o.Pods.Capacity < 1 {
		return errors.New("--pod-capacity must be at least 1")
	}
	if agent := o.Workspaces.Placement; agent != "" && agent != template.ImageVolume && agent != template.InitContainer {
		return fmt.Errorf("--workspace-agent is %q: it must be ImageVolume or InitContainer", agent)
	}
	return nil
}

func envOr(name, fallback string) string {
	return cmp.Or(os.Getenv(name), fallback)
}
