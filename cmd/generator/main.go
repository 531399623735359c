// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Command generator performs the attempts of the chats of its pod.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/go-logr/logr"
	"github.com/google/uuid"
	_ "golang.org/x/crypto/x509roots/fallback" // for images without authorities, such as that of "make image"
	"golang.org/x/net/http/httpproxy"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/fence"
	"parley.dev/parley/internal/generation/advisor"
	"parley.dev/parley/internal/generation/models/keyfile"
	"parley.dev/parley/internal/generation/runner"
	"parley.dev/parley/internal/generation/sources"
	"parley.dev/parley/internal/generation/workspaces"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/internal/kube/kubeapi"
	"parley.dev/parley/internal/kube/tokencache"
	"parley.dev/parley/internal/mcp"
	"parley.dev/parley/internal/pods/placement"
	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/internal/stream/lifetime"
	"parley.dev/parley/internal/stream/publish"
	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/internal/telemetry/tracing"
	"parley.dev/parley/internal/text/printable"
	"parley.dev/parley/internal/text/version"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/builtin"
	"parley.dev/parley/internal/tools/kubernetes"
	"parley.dev/parley/internal/tools/planning"
	"parley.dev/parley/internal/tools/skills"
	"parley.dev/parley/internal/tools/subagents"
	"parley.dev/parley/internal/tools/templates"
	"parley.dev/parley/internal/tools/workspace"
)

func main() {
	_, _ = memlimit.Set() // Nine tenths of the container's memory limit; without one there is none.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(200) // The heap is a few MiB: twice as much garbage halves what collecting it costs in a burst.
	}
	metrics := flag.String("metrics-address", ":8082", "where to serve Prometheus metrics; 0: nowhere")
	health := flag.String("health-address", ":8081", "where to answer the kubelet's probes")
	var files, models, servers []string
	repeatedHosts(&files, "file-host", "a `host` that files may be fetched from, such as files.example.com, "+
		"files.example.com:8443 or *.example.com; repeat it for more")
	gateway := flag.String("gateway-url", "", "the `URL` of the gateway, which has the stored files of chats; empty: "+
		"there are none")
	repeatedHosts(&models, "model-host", "a `host` that models may be called at, such as models.example.com, "+
		"ollama.models:11434 or *.openai.azure.com; repeat it for more; default: all")
	repeatedHosts(&servers, "mcp-host", "a `host` that MCP servers may be called at, such as mcp.example.com, "+
		"tools.mcp.svc:8080 or *.example.com; repeat it for more; default: all")
	var o runner.Options
	o.Network.Proxy = *httpproxy.FromEnvironment()
	flag.BoolVar(&o.Network.Loopback, "allow-loopback", false, "call models and MCP servers at loopback addresses, too")
	text(&o.Network.Proxy.HTTPProxy, "http-proxy", "`URL` of the proxy for calls of http URLs of models, MCP servers and "+
		"files; default: $HTTP_PROXY")
	text(&o.Network.Proxy.HTTPSProxy, "https-proxy", "`URL` of the proxy for https URLs; default: $HTTPS_PROXY")
	text(&o.Network.Proxy.NoProxy, "no-proxy", "`hosts` that are called without a proxy, separated by commas; default: "+
		"$NO_PROXY")
	flag.StringVar(&o.Network.CAFile, "ca-file", "", "a `file` of certificates in PEM whose authorities are trusted for "+
		"these calls in addition to the system's; it may be missing")
	flag.IntVar(&o.Capacity, "capacity", placement.DefaultCapacity, "how many chats this pod may serve at once")
	advisorUses := flag.Int("advisor-max-uses", -1, "how often a turn may ask the advisor at most; 0: never; -1: no bound")
	recordings := flag.Bool("recordings", true, "record model calls where Chats and ChatModelConfigs ask for it")
	profiling := flag.Bool("profiling", false, "serve profiles of this program at the metrics address")
	verbose := flag.Bool("verbose", false, "log each attempt at a step as it starts and as it ends")
	version.AddFlag(flag.CommandLine, "generator")
	flag.Parse()
	o.FileHosts, o.ModelHosts, o.NoRecordings = files, models, !*recordings
	if *gateway != "" {
		direct := o.Network
		direct.Proxy = httpproxy.Config{}
		o.Gateway = &sources.Gateway{URL: *gateway, TokenFile: podspec.GatewayTokenFile, HTTP: direct.Client()}
	}
	if *advisorUses >= 0 {
		o.AdvisorUses = new(int32(*advisorUses))
	}
	level := slog.LevelInfo
	if *verbose {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewJSONHandler(printable.JSONWriter(os.Stderr), &slog.HandlerOptions{Level: level}))
	// Google's client logs each stream that ends early, which the attempt's result reports.
	slog.SetLogLoggerLevel(slog.LevelDebug)
	slog.SetDefault(log)
	// client-go logs to the logger in the context.
	ctx := logr.NewContextWithSlogLogger(context.Background(), log)
	mcpServers := mcp.Options{Namespace: os.Getenv("POD_NAMESPACE"), Hosts: servers, HTTP: o.Network.Client,
		Secrets: secretKey, Log: log, Now: time.Now}
	if err := run(ctx, log, *health, *metrics, *profiling, o, mcpServers); err != nil {
		log.Error("generator failed", slog.Any("error", err))
		os.Exit(1)
	}
}

// text defines a flag whose usage does not print its default.
func text(to *string, name, usage string) {
	flag.Func(name, usage, func(value string) error {
		*to = value
		return nil
	})
}

// repeatedHosts defines a flag of one host that can be repeated.
func repeatedHosts(to *[]string, name, usage string) {
	flag.Func(name, usage, func(host string) error {
		*to = append(*to, host)
		return nil
	})
}

func run(parent context.Context, log *slog.Logger, health, metrics string, profiling bool, o runner.Options,
	mcpServers mcp.Options) error {
	// The first signal begins to drain, the second ends the running attempts.
	drain, stopDrain := signal.NotifyContext(parent, syscall.SIGTERM, syscall.SIGINT)
	defer stopDrain()
	ctx, stop := context.WithCancel(parent)
	defer stop()
	context.AfterFunc(drain, func() {
		again, stopAgain := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGINT)
		context.AfterFunc(again, func() { stopAgain(); stop() })
	})

	defer live(ctx, log)()
	tracer, err := tracing.New(ctx, tracing.Service{Name: "parley-generator", Namespace: os.Getenv("POD_NAMESPACE"),
		Pod: os.Getenv("POD_NAME")}, log)
	if err != nil {
		return err
	}
	defer tracer.Close(ctx)
	registry := telemetry.NewRegistry()
	client, cluster, err := apiClients()
	if err != nil {
		return err
	}
	sidecar := publish.New(cmp.Or(os.Getenv("RELAY_SOCKET"), "/run/parley/relay.sock"), uuid.NewString(),
		time.Now)
	mcpServers.ConfigMap = configMapKey(client, os.Getenv("POD_NAMESPACE"))
	o.MCP = mcp.New(mcpServers)
	r, err := newRunner(log, client, cluster, sidecar, o, telemetry.NewGenerator(registry), tracer)
	if err != nil {
		return err
	}
	defer keepKeys(ctx, log, client, sidecar)()
	if err := telemetry.Serve(ctx, metrics, registry, profiling); err != nil {
		return err
	}
	server := &http.Server{
		Addr: health, Handler: healthHandler(r, log), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 16 << 10,
	}
	served := make(chan error, 1)
	go func() { served <- server.ListenAndServe() }()
	defer func() { _ = server.Close() }()
	ran := make(chan error, 1)
	go func() { ran <- r.Run(ctx, drain) }()
	select {
	case err := <-served:
		return fmt.Errorf("answering probes at %s: %w", health, err)
	case err := <-ran:
		return err
	}
}

// live shows the relay that this process is running, until end is called.
func live(ctx context.Context, log *slog.Logger) (end func()) {
	end, err := lifetime.Hold(cmp.Or(os.Getenv("GENERATOR_LOCK"), "/run/parley/generator.lock"))
	if err != nil {
		log.WarnContext(ctx, "holding the generator's lock failed: the relay will end before its last parts are read",
			slog.Any("error", err))
		return func() {}
	}
	return end
}

// relayPatience is how long a generator waits for its relay, before it performs attempts that cannot be followed.
const relayPatience = 10 * time.Second

func awaitRelay(ctx context.Context, log *slog.Logger, sidecar *publish.Client) {
	waiting, cancel := context.WithTimeout(ctx, relayPatience)
	defer cancel()
	if err := sidecar.Await(waiting); err != nil && ctx.Err() == nil {
		log.WarnContext(ctx, "the relay does not listen: replies cannot be followed until it does", slog.Any("error", err))
	}
}

// apiClients are clients as the pod's own account, and as other accounts of its namespace.
func apiClients() (*apiclient.Client, *kubeapi.Client, error) {
	cfg, err := rest.InClusterConfig()
	if err != nil {
		return nil, nil, fmt.Errorf("finding the API server: %w", err)
	}
	cfg = apiclient.InCluster(cfg)
	client, err := apiclient.New(cfg, "parley-generator")
	if err != nil {
		return nil, nil, err
	}
	namespace := os.Getenv("POD_NAMESPACE")
	mint := func(ctx context.Context, account string) (string, time.Time, error) {
		of := apiclient.TokenFor{Namespace: namespace, Account: account, Seconds: kubeapi.TokenSeconds}
		return client.Token(ctx, of, "")
	}
	cluster, err := kubeapi.New(cfg, mint, time.Now)
	return client, cluster, err
}

// keepKeys sends the relay, which has no credentials, the keys of its readers' tokens, until end is called.
func keepKeys(ctx context.Context, log *slog.Logger, client *apiclient.Client, sidecar *publish.Client) (end func()) {
	keeping, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { sidecar.KeepKeys(keeping, client.IssuerKeys, log) })
	return func() {
		stop()
		running.Wait()
	}
}

func newRunner(log *slog.Logger, client *apiclient.Client, cluster *kubeapi.Client, sidecar *publish.Client,
	o runner.Options, metrics *telemetry.Generator, tracer *tracing.Tracer) (*runner.Runner, error) {
	pod, namespace, uid := os.Getenv("POD_NAME"), os.Getenv("POD_NAMESPACE"), os.Getenv("POD_UID")
	if pod == "" || namespace == "" || uid == "" {
		return nil, errors.New("POD_NAME, POD_NAMESPACE and POD_UID must be set")
	}
	found := workspaces.New(workspaces.Options{
		Namespace: namespace, Chat: client.Chats(namespace).Get, Workspace: client.Workspaces(namespace).Get,
		Mint: mintFor(client, namespace, os.Getenv("POD_SERVICE_ACCOUNT"), pod, uid), Now: time.Now,
	})
	workspaceTools := workspace.Tools(workspace.Options{Has: workspaces.Has, Now: time.Now, Workspaces: found})
	texts := sources.New(sources.Options{Client: client, Forbidden: runner.DefaultForbidden, Now: time.Now})
	skillTools := skills.Tools(skills.Options{OfChat: texts.SkillsOf, Has: workspaces.Has, Workspaces: found})
	templateTools := templates.Tools(templates.Options{List: workspaces.Templates(client, namespace)})
	agentTools := subagents.Tools(subagents.Options{
		Chat: client.Chats(namespace).Get, Chats: client.Chats(namespace).List, Config: client.ModelConfigs(namespace).Get,
	})
	o.Namespace, o.Pod = namespace, pod
	o.Client, o.Keys = client, secretKey
	o.Relay = relay{sidecar}
	o.AwaitRelay = func(ctx context.Context) { awaitRelay(ctx, log, sidecar) }
	o.Tools = tools.NewRegistry(append(slices.Concat(workspaceTools, templateTools, skillTools, agentTools,
		planning.Tools(), kubernetes.Tools(cluster)),
		advisor.Tool{},
		builtin.CurrentTime{Now: time.Now},
		builtin.WaitAgent{Chat: client.Chats(namespace).Get, Message: client.Messages(namespace).Get},
	)...)
	o.WorkspaceContext, o.Workspace, o.WorkspaceOwner = found.Context, found.Of, found.Owner
	o.ClusterUnavailable = func(ctx context.Context, chat *v1beta1.Chat) *v1beta1.KubernetesUnavailable {
		return kubernetes.Unavailable(ctx, cluster, chat)
	}
	o.Log, o.Now = log, time.Now
	o.Metrics, o.Tracer = metrics, tracer
	return runner.New(o), nil
}

// secretKey reads a key of a mounted Secret.
func secretKey(secret, key string) ([]byte, error) {
	return keyfile.Read(cmp.Or(os.Getenv("KEYS_DIR"), "/var/run/parley/keys"), secret, key)
}

// configMapKey reads keys of the ConfigMaps of the namespace.
func configMapKey(client *apiclient.Client, namespace string) func(context.Context, string, string) ([]byte, error) {
	return func(ctx context.Context, name, key string) ([]byte, error) {
		config, err := client.ConfigMap(ctx, namespace, name)
		if apierrors.IsNotFound(err) {
			return nil, fs.ErrNotExist
		}
		if err != nil {
			return nil, fmt.Errorf("reading ConfigMap %s: %w", name, err)
		}
		value, ok := config.Value(key)
		if !ok {
			return nil, fs.ErrNotExist
		}
		return value, nil
	}
}

// mintFor requests tokens of the pod's account, each for one workspace and bound to the pod.
func mintFor(client *apiclient.Client, namespace, account, pod, uid string) tokencache.Mint {
	own := apiclient.TokenFor{Namespace: namespace, Account: account, Pod: pod, PodUID: uid, Seconds: 3600}
	return func(ctx context.Context, audience string) (string, time.Time, error) {
		return client.Token(ctx, own, audience)
	}
}

// relay adapts the relay's client to the runner.
type relay struct{ client *publish.Client }

func (r relay) Open(ctx context.Context, ep fence.Fence) (runner.Episode, error) {
	return r.client.Open(ctx, ep)
}

func (r relay) SoFar(ctx context.Context, ep fence.Fence) ([]parts.Frame, error) {
	return r.client.SoFar(ctx, ep)
}

func healthHandler(r *runner.Runner, log *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, req *http.Request) {
		if err := r.Healthy(req.Context()); err != nil {
			log.ErrorContext(req.Context(), "the generator is not healthy: the kubelet restarts it if that lasts",
				slog.Any("error", err))
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !r.Ready() {
			http.Error(w, "not watching chats yet, or about to end", http.StatusServiceUnavailable)
		}
	})
	return mux
}
