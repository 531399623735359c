// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	server "parley.dev/parley/internal/gateway"
	"parley.dev/parley/internal/gateway/auth"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/pty"
	"parley.dev/parley/test/kit/testcluster"
	until "parley.dev/parley/test/kit/waiting"
)

var shared struct {
	sync.Once
	cluster *testcluster.Cluster
	err     error
}

func TestMain(m *testing.M) {
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
	files     map[string]string // kubeconfigs: with a token, and with a client certificate
	chat      *v1alpha1.Chat
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
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}},
	}})
	p.create(&rbacv1.RoleBinding{ObjectMeta: p.meta("person"),
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "person"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: p.namespace, Name: "person"}}})
	// The API server learns of a binding by a watch.
	until.Until(t, 30*time.Second, "the person has their rights", p.mayGetChats)
	p.files = map[string]string{"token": p.kubeconfig(&clientcmdapi.AuthInfo{Token: p.token()}),
		"certificate": p.kubeconfig(&clientcmdapi.AuthInfo{ClientCertificateData: shared.cluster.Config.CertData,
			ClientKeyData: shared.cluster.Config.KeyData})}
	p.chat = chattest.In(p.namespace, chattest.Chat("triage"))
	p.create(p.chat)
	p.gateway = p.startGateway()
	return p
}

func (p *person) mayGetChats() bool {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: "system:serviceaccount:" + p.namespace + ":person",
		ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: p.namespace, Group: "parley.dev",
			Resource: "chats", Verb: "get"},
	}}
	p.create(review)
	return review.Status.Allowed
}

func (p *person) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: p.namespace, Name: name}
}

func (p *person) create(o client.Object) {
	p.t.Helper()
	if err := p.c.Create(p.t.Context(), o); err != nil {
		p.t.Fatal(err)
	}
}

func (p *person) updateStatus(o client.Object) {
	p.t.Helper()
	if err := p.c.Status().Update(p.t.Context(), o); err != nil {
		p.t.Fatal(err)
	}
}

func (p *person) token() string {
	p.t.Helper()
	core := kubernetes.NewForConfigOrDie(shared.cluster.Config)
	request, err := core.CoreV1().ServiceAccounts(p.namespace).CreateToken(p.t.Context(), "person",
		&authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	return request.Status.Token
}

func (p *person) kubeconfig(who *clientcmdapi.AuthInfo) string {
	p.t.Helper()
	path := filepath.Join(p.t.TempDir(), "kubeconfig")
	config := clientcmdapi.Config{CurrentContext: "c",
		Clusters: map[string]*clientcmdapi.Cluster{"c": {Server: shared.cluster.Config.Host,
			CertificateAuthorityData: shared.cluster.Config.CAData}},
		AuthInfos: map[string]*clientcmdapi.AuthInfo{"c": who},
		Contexts:  map[string]*clientcmdapi.Context{"c": {Cluster: "c", AuthInfo: "c", Namespace: p.namespace}}}
	if err := clientcmd.WriteToFile(config, path); err != nil {
		p.t.Fatal(err)
	}
	return path
}

func (p *person) startGateway() string {
	p.t.Helper()
	core := kubernetes.NewForConfigOrDie(shared.cluster.Config)
	api, err := apiclient.New(shared.cluster.Config, "parley-gateway")
	if err != nil {
		p.t.Fatal(err)
	}
	g, err := server.New(server.Config{
		Chats: api.Chats(p.namespace).ListerWatcher(""),
		Notes: api.Messages(p.namespace).ListerWatcher(server.NoteSelector),
		Pods: cache.NewFilteredListWatchFromClient(core.CoreV1().RESTClient(), "pods", p.namespace,
			func(*metav1.ListOptions) {}),
		GetMessage: func(ctx context.Context, namespace, name string) (*v1alpha1.ChatMessage, error) {
			return api.Messages(namespace).Get(ctx, name)
		},
		Checker: auth.New(core.AuthenticationV1().TokenReviews(), core.AuthorizationV1().SubjectAccessReviews(),
			auth.Options{APIServerTokens: true, Now: time.Now}),
		Now: time.Now,
	})
	if err != nil {
		p.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { g.Run(ctx); close(done) }()
	p.t.Cleanup(func() { cancel(); <-done })
	listening := httptest.NewServer(g.Handler())
	p.t.Cleanup(listening.Close)
	p.t.Cleanup(listening.CloseClientConnections)
	for range poll(p.t, "the gateway is synced") {
		if g.Synced() {
			break
		}
	}
	return listening.URL
}

// poll yields until the test has what it waits for, and fails it if that takes too long.
func poll(t *testing.T, what string) iter.Seq[struct{}] {
	return func(yield func(struct{}) bool) {
		timeout, tick := time.After(20*time.Second), time.NewTicker(5*time.Millisecond)
		defer tick.Stop()
		for yield(struct{}{}) {
			select {
			case <-tick.C:
			case <-timeout:
				t.Errorf("waited in vain until %s", what)
				return
			}
		}
	}
}

// command is the plug-in while it runs.
type command struct {
	t           *testing.T
	out, errOut pty.Output
	stop        context.CancelFunc
	done        chan error
}

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
	case <-time.After(20 * time.Second):
		c.t.Fatalf("the command does not end; it wrote %q and %q", c.out.String(), c.errOut.String())
		return errors.New("not reached")
	}
}

func (c *command) waitOutput(want string) {
	c.t.Helper()
	for range poll(c.t, fmt.Sprintf("%q is shown", want)) {
		if strings.Contains(c.out.String(), want) {
			return
		}
	}
	c.t.Fatalf("it wrote %q and %q", c.out.String(), c.errOut.String())
}
