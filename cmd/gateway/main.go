// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Command gateway serves the streams of chats to people and programs.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	_ "golang.org/x/crypto/x509roots/fallback" // for images without authorities, such as that of "make image"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/archive"
	"parley.dev/parley/internal/gateway"
	"parley.dev/parley/internal/gateway/auth"
	operations "parley.dev/parley/internal/gateway/rest"
	"parley.dev/parley/internal/gateway/token"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/internal/kube/shard"
	"parley.dev/parley/internal/kube/tokencache"
	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/internal/text/version"
)

const (
	userAgent = "parley-gateway"
	// podTokenSeconds is how long a token for a relay or a workspace is good: an hour.
	podTokenSeconds int64 = 3600
)

type config struct {
	listen, metrics, kubeconfig string
	profiling                   bool
	namespace, account          string
	namespaces                  []string
	tlsCert, tlsKey             string
	archiveURL                  string
	fileLimit                   resource.Quantity
	relayPort                   int
	auth                        auth.Options
	limits                      gateway.Limits
	signIn                      signInFlags
}

func main() {
	_, _ = memlimit.Set() // Nine tenths of the container's memory limit; without one there is none.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "gateway:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	c, err := parse(args)
	if err != nil {
		return err
	}
	log := apiclient.NewLogger(os.Stderr, slog.LevelInfo)
	cluster, err := clientcmd.BuildConfigFromFlags("", c.kubeconfig)
	if err != nil {
		return fmt.Errorf("finding the API server: %w", err)
	}
	cluster = apiclient.InCluster(cluster)
	cluster.QPS, cluster.UserAgent = -1, userAgent // priority and fairness of the API server is the limit
	registry := telemetry.NewRegistry()
	g, err := newGateway(ctx, cluster, c, telemetry.NewGateway(registry), log)
	if err != nil {
		return err
	}
	if err := telemetry.Serve(ctx, c.metrics, registry, c.profiling); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", c.listen)
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	certificates, err := c.certificates(log)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	return g.Serve(ctx, listener, certificates)
}

// certificates are what is served over TLS; nil for plain HTTP.
func (c config) certificates(log *slog.Logger) (*tls.Config, error) {
	if c.tlsCert == "" {
		return nil, nil
	}
	return gateway.TLS(c.tlsCert, c.tlsKey, log, time.Now)
}

func parse(args []string) (config, error) {
	var c config
	flags := flag.NewFlagSet("gateway", flag.ContinueOnError)
	version.AddFlag(flags, "gateway")
	flags.StringVar(&c.listen, "listen", ":8080", "address to serve on")
	flags.StringVar(&c.metrics, "metrics-address", ":8082", "where to serve Prometheus metrics; 0: nowhere")
	flags.BoolVar(&c.profiling, "profiling", false, "serve profiles of this program at the metrics address")
	flags.IntVar(&c.relayPort, "relay-port", 7070, "port of the relays on generation pods")
	flags.StringVar(&c.namespace, "namespace", os.Getenv("POD_NAMESPACE"),
		"namespace of the gateway's service account; default: $POD_NAMESPACE")
	flags.StringVar(&c.account, "account", os.Getenv("POD_SERVICE_ACCOUNT"),
		"the gateway's own service account, which relays admit; default: $POD_SERVICE_ACCOUNT")
	namespaces := func(value string) (err error) {
		c.namespaces, err = shard.ParseNamespaces(value)
		return err
	}
	flags.Func("namespaces", "`namespaces` that this gateway is limited to, separated by commas, such as team-a,team-b; "+
		"empty: all; default: $PARLEY_NAMESPACES", namespaces)
	flags.StringVar(&c.kubeconfig, "kubeconfig", "", "kubeconfig to use outside of a cluster")
	flags.StringVar(&c.tlsCert, "tls-cert-file", "",
		"PEM file with the certificate to serve with; read again when it changes; empty: plain HTTP")
	flags.StringVar(&c.tlsKey, "tls-key-file", "", "PEM file with the certificate's key")
	c.archiveURL = os.Getenv("PARLEY_ARCHIVE_URL")
	flags.Func("archive-url", "`URL` of the bucket that the manager archives chats to, and that has the "+
		"files of chats; default: $PARLEY_ARCHIVE_URL",
		func(value string) error {
			c.archiveURL = value
			return nil
		})
	c.fileLimit = resource.MustParse("10Gi")
	flags.Func("max-stored-files", "`quantity` of bytes that the uploaded files of a namespace may have where "+
		"no ChatQuota sets spec.storedFiles; default: 10Gi", func(value string) (err error) {
		c.fileLimit, err = resource.ParseQuantity(value)
		return err
	})
	c.callers(flags)
	c.signIn.add(flags)
	if err := namespaces(os.Getenv("PARLEY_NAMESPACES")); err != nil {
		return c, fmt.Errorf("$PARLEY_NAMESPACES: %w", err)
	}
	if err := flags.Parse(args); err != nil {
		return c, err
	}
	if flags.NArg() > 0 {
		return c, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if (c.tlsCert == "") != (c.tlsKey == "") {
		return c, errors.New("--tls-cert-file and --tls-key-file go together")
	}
	if c.namespace == "" || c.account == "" {
		return c, errors.New("--namespace and --account must name the gateway's own service account")
	}
	return c, c.signIn.check(c.auth.APIServerTokens)
}

// callers are the flags about who is let in, and what that may cost.
func (c *config) callers(flags *flag.FlagSet) {
	flags.BoolVar(&c.auth.APIServerTokens, "accept-api-server-tokens", true,
		"accept tokens that the API server itself accepts, besides those of the audience "+token.Audience)
	flags.BoolVar(&c.auth.OpaqueTokens, "accept-opaque-tokens", false,
		"ask the API server also about tokens that are no JSON web tokens, as some clouds hand them out; with "+
			"--accept-api-server-tokens")
	flags.IntVar(&c.auth.Reviews, "max-reviews", auth.DefaultReviews,
		"how many questions about callers the API server is asked at the same time")
	flags.IntVar(&c.limits.Streams, "max-streams", gateway.DefaultStreams, "how many streams are open at the same time")
	flags.IntVar(&c.limits.StreamsPerCaller, "max-streams-per-caller", gateway.DefaultStreamsPerCaller,
		"how many streams one caller has open at the same time")
	flags.IntVar(&c.limits.Requests, "max-requests", operations.DefaultRequests,
		"how many requests that are no streams are under way at the same time")
	flags.Int64Var(&c.limits.StreamMemory, "stream-memory", gateway.DefaultStreamMemory,
		"bytes of messages that all streams hold together, besides 64 MiB that they share")
}

func newGateway(ctx context.Context, cluster *rest.Config, c config, metrics *telemetry.Gateway, log *slog.Logger) (
	*gateway.Gateway, error) {
	core, err := kubernetes.NewForConfig(cluster)
	if err != nil {
		return nil, fmt.Errorf("making a client of the API server: %w", err)
	}
	chats, err := apiclient.New(cluster, userAgent)
	if err != nil {
		return nil, err
	}
	callers, err := operations.NewClient(cluster)
	if err != nil {
		return nil, err
	}
	people, err := c.signIn.open(callers)
	if err != nil {
		return nil, err
	}
	store, err := archive.Open(ctx, c.archiveURL, time.Now)
	if err != nil {
		return nil, err
	}
	c.auth.Now = time.Now
	get := func(ctx context.Context, namespace, name string) (*v1beta1.ChatMessage, error) {
		return chats.Messages(namespace).Get(ctx, name)
	}
	cached := func(ctx context.Context, namespace, name string) (*v1beta1.ChatMessage, error) {
		return chats.Messages(namespace).GetCached(ctx, name)
	}
	return gateway.New(gateway.Config{
		Namespaces: c.namespaces,
		Sources:    gateway.NewSources(chats, core.CoreV1().RESTClient()),
		GetMessage: get, CachedMessage: cached,
		Callers:   callers,
		SignIn:    people,
		Archive:   store,
		FileLimit: c.fileLimit.Value(),
		Quotas: func(ctx context.Context, namespace string) ([]v1beta1.ChatQuota, error) {
			list, err := chats.Quotas(namespace).List(ctx, metav1.ListOptions{})
			return list.Items, err
		},
		Checker:   auth.New(core.AuthenticationV1().TokenReviews(), core.AuthorizationV1().SubjectAccessReviews(), c.auth),
		RelayPort: c.relayPort,
		PodToken:  mintFor(core, c.namespace, c.account),
		GetPod: func(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
			return core.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		},
		Limits:  c.limits,
		Now:     time.Now,
		Log:     log,
		Metrics: metrics,
	})
}

// mintFor asks for tokens of the gateway's own account, each for one relay or one workspace.
func mintFor(core kubernetes.Interface, namespace, account string) tokencache.Mint {
	return func(ctx context.Context, audience string) (string, time.Time, error) {
		request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
			Audiences: []string{audience}, ExpirationSeconds: new(podTokenSeconds),
		}}
		got, err := core.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, account, request, metav1.CreateOptions{})
		if err != nil {
			return "", time.Time{}, err
		}
		return got.Status.Token, got.Status.ExpirationTimestamp.Time, nil
	}
}
