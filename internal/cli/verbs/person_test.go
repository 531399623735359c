// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/blob/memblob"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/archive"
	server "parley.dev/parley/internal/gateway"
	"parley.dev/parley/internal/gateway/auth"
	"parley.dev/parley/internal/gateway/rest"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/pty"
	"parley.dev/parley/test/kit/testcluster"
	kit "parley.dev/parley/test/kit/waiting"
)

var shared struct {
	sync.Once
	cluster *testcluster.Cluster
	err     error
}

// asProgram is the variable that makes the test binary the plug-in.
const asProgram = "PARLEY_TEST_KUBECTL_CHAT"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(Run(context.Background(), genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr},
			os.Args[1:]))
	}
	code := m.Run()
	if shared.cluster != nil {
		if err := shared.cluster.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// person is somebody with a kubeconfig, in a namespace with one chat, and a gateway that serves it.
type person struct {
	t         *testing.T
	c         client.Client
	namespace string
	gateway   string

	// files are kubeconfigs: with a token, with a client certificate, and with both, whose token only the gateway sees,
	// because the API server takes the certificate.
	files   map[string]string
	chat    *v1beta1.Chat
	archive *archive.Store
	bucket  *blob.Bucket // that of archive
}

func newPerson(t *testing.T) *person {
	t.Helper()
	shared.Do(func() { shared.cluster, shared.err = testcluster.StartShared(context.Background()) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	p := &person{t: t, c: shared.cluster.Client, namespace: shared.cluster.Namespace(t, "plugin")}
	p.create(&corev1.ServiceAccount{ObjectMeta: p.meta("person")})
	p.create(&rbacv1.Role{ObjectMeta: p.meta("person"), Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"parley.dev"}, Resources: []string{"chats", "chatmessages", "toolapprovals", "chatdebugsteps"},
			Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}},
		{APIGroups: []string{"parley.dev"}, Resources: []string{"chatclasses"}, Verbs: []string{"list"}},
		{APIGroups: []string{"parley.dev"}, Resources: []string{"chats/stream"}, Verbs: []string{"get"}},
		{APIGroups: []string{"parley.dev"}, Resources: []string{"chats/archive"}, Verbs: []string{"get", "list", "delete"}},
		{APIGroups: []string{"parley.dev"}, Resources: []string{"chats"}, Verbs: []string{"restore", "redact"}},
		{APIGroups: []string{"parley.dev"}, Resources: []string{"chats/status"}, Verbs: []string{"patch"}},
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}},
	}})
	p.create(&rbacv1.RoleBinding{ObjectMeta: p.meta("person"),
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "person"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: p.namespace, Name: "person"}}})
	// The API server learns of a binding by a watch.
	eventually(t, "the person has their rights", func() bool { return p.may("get", "chats") })
	p.files = map[string]string{"token": p.kubeconfig(&clientcmdapi.AuthInfo{Token: p.token()}),
		"certificate": p.kubeconfig(&clientcmdapi.AuthInfo{ClientCertificateData: shared.cluster.Config.CertData,
			ClientKeyData: shared.cluster.Config.KeyData}),
		"opaque": p.kubeconfig(&clientcmdapi.AuthInfo{ClientCertificateData: shared.cluster.Config.CertData,
			ClientKeyData: shared.cluster.Config.KeyData, Token: "k8s-aws-v1.aHR0cHM6Ly9zdHM"})}
	p.chat = chattest.In(p.namespace, chattest.Chat("triage"))
	p.create(p.chat)
	p.gateway = p.startGateway()
	return p
}

func (p *person) may(verb, resource string) bool {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: "system:serviceaccount:" + p.namespace + ":person",
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: p.namespace, Group: "parley.dev",
			Resource: resource, Verb: verb},
	}}
	p.create(review)
	return review.Status.Allowed
}

func (p *person) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: p.namespace, Name: name}
}

func (p *person) create(o client.Object) {
	p.t.Helper()
	check.OK(p.t, p.c.Create(p.t.Context(), o))
}

func (p *person) updateStatus(o client.Object) {
	p.t.Helper()
	check.OK(p.t, p.c.Status().Update(p.t.Context(), o))
}

func (p *person) token() string {
	p.t.Helper()
	core := kubernetes.NewForConfigOrDie(shared.cluster.Config)
	request, err := core.CoreV1().ServiceAccounts(p.namespace).CreateToken(p.t.Context(), "person",
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	check.OK(p.t, err)
	return request.Status.Token
}

func (p *person) kubeconfig(who *clientcmdapi.AuthInfo) string {
	p.t.Helper()
	return p.kubeconfigOf(shared.cluster.Config.Host, shared.cluster.Config.CAData, who)
}

// kubeconfigOf writes a kubeconfig for an address of the API server.
func (p *person) kubeconfigOf(server string, ca []byte, who *clientcmdapi.AuthInfo) string {
	p.t.Helper()
	path := filepath.Join(p.t.TempDir(), "kubeconfig")
	config := clientcmdapi.Config{CurrentContext: "c",
		Clusters:  map[string]*clientcmdapi.Cluster{"c": {Server: server, CertificateAuthorityData: ca}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"c": who},
		Contexts:  map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "c", Namespace: p.namespace}}}
	check.OK(p.t, clientcmd.WriteToFile(config, path))
	return path
}

func (p *person) startGateway() string {
	p.t.Helper()
	core := kubernetes.NewForConfigOrDie(shared.cluster.Config)
	api, err := apiclient.New(shared.cluster.Config, "parley-gateway")
	check.OK(p.t, err)
	callers, err := rest.NewClient(shared.cluster.Config)
	check.OK(p.t, err)
	bucket := memblob.OpenBucket(nil)
	p.t.Cleanup(func() { check.OK(p.t, bucket.Close()) })
	p.archive, p.bucket = archive.New(bucket, time.Now), bucket
	g, err := server.New(server.Config{
		Callers: callers, Archive: p.archive, FileLimit: 10 << 20,
		Quotas: func(ctx context.Context, namespace string) ([]v1beta1.ChatQuota, error) {
			list, err := api.Quotas(namespace).List(ctx, metav1.ListOptions{})
			return list.Items, err
		},
		Namespaces: []string{p.namespace},
		Sources:    server.NewSources(api, core.CoreV1().RESTClient()),
		GetMessage: func(ctx context.Context, namespace, name string) (*v1beta1.ChatMessage, error) {
			return api.Messages(namespace).Get(ctx, name)
		},
		Checker: auth.New(core.AuthenticationV1().TokenReviews(), core.AuthorizationV1().SubjectAccessReviews(),
			auth.Options{APIServerTokens: true, Now: time.Now}),
		Now: time.Now,
	})
	check.OK(p.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { g.Run(ctx); close(done) }()
	p.t.Cleanup(func() { cancel(); <-done })
	listening := httptest.NewServer(g.Handler())
	p.t.Cleanup(listening.Close)
	p.t.Cleanup(listening.CloseClientConnections)
	eventually(p.t, "the gateway is synced", g.Synced)
	return listening.URL
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	kit.Until(t, time.Minute, what, condition)
}

// get reads an object again.
func (p *person) get(o client.Object) {
	p.t.Helper()
	check.OK(p.t, p.c.Get(p.t.Context(), client.ObjectKeyFromObject(o), o))
}

func (p *person) update(o client.Object) {
	p.t.Helper()
	check.OK(p.t, p.c.Update(p.t.Context(), o))
}

func (p *person) delete(o client.Object) {
	p.t.Helper()
	check.OK(p.t, p.c.Delete(p.t.Context(), o))
}

// find waits for an object of the namespace.
func find[T client.Object](p *person, what string, list client.ObjectList, fits func(T) bool) (found T) {
	p.t.Helper()
	eventually(p.t, what, func() bool {
		check.OK(p.t, p.c.List(p.t.Context(), list, client.InNamespace(p.namespace)))
		exists := false
		check.OK(p.t, meta.EachListItem(list, func(o runtime.Object) error {
			if o, ok := o.(T); ok && !exists && fits(o) {
				found, exists = o, true
			}
			return nil
		}))
		return exists
	})
	return found
}

// command is the plug-in while it runs.
type command struct {
	t           *testing.T
	out, errOut pty.Output
	stop        context.CancelFunc
	done        chan error
}

// run runs the plug-in with the person's token.
func (p *person) run(args ...string) *command { return p.start("token", "", args...) }

// start runs the plug-in with one of the person's kubeconfigs.
func (p *person) start(kubeconfig, stdin string, args ...string) *command {
	c := &command{t: p.t, done: make(chan error, 1)}
	cmd := NewCommand(genericiooptions.IOStreams{In: strings.NewReader(stdin), Out: &c.out, ErrOut: &c.errOut})
	cmd.SetArgs(append([]string{"--kubeconfig", p.files[kubeconfig]}, args...))
	ctx, cancel := context.WithCancel(context.Background())
	c.stop = cancel
	p.t.Cleanup(cancel)
	go func() { c.done <- cmd.ExecuteContext(ctx) }()
	return c
}

func (c *command) wait() error {
	c.t.Helper()
	select {
	case err := <-c.done:
		return err
	case <-time.After(time.Minute):
		c.t.Fatalf("the command does not end; it wrote %q and %q", c.out.String(), c.errOut.String())
		return errors.New("not reached")
	}
}

// waitOutput waits until the command has shown something.
func (c *command) waitOutput(want string) {
	c.t.Helper()
	eventually(c.t, want+" is shown", func() bool { return strings.Contains(c.out.String(), want) })
}

// waitNote waits until the command has noted something.
func (c *command) waitNote(want string) {
	c.t.Helper()
	eventually(c.t, want+" is noted", func() bool { return strings.Contains(c.errOut.String(), want) })
}

func (c *command) succeeds() {
	c.t.Helper()
	check.OK(c.t, c.wait())
}

// shows checks that the command succeeds with that output, and with the pieces in its notes.
func (c *command) shows(want string, notes ...string) {
	c.t.Helper()
	c.succeeds()
	check.Equal(c.t, "shown", want, c.out.String())
	check.Contains(c.t, c.errOut.String(), notes...)
}

// fails checks that the command fails, with the pieces in its error.
func (c *command) fails(want ...string) {
	c.t.Helper()
	check.Contains(c.t, fmt.Sprint(c.wait()), want...)
}

// failsWith checks that the command fails with that error.
func (c *command) failsWith(want string) {
	c.t.Helper()
	check.Equal(c.t, "error", want, fmt.Sprint(c.wait()))
}

// exits checks that the command ends with that code and with the piece in its error.
func (c *command) exits(code int, want string) {
	c.t.Helper()
	err := c.wait()
	check.Equal(c.t, "exit code", code, exitCode(err))
	check.Contains(c.t, fmt.Sprint(err), want)
}
