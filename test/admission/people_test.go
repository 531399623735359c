// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"sync"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/controllers"
	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/test/kit/check"
)

// actor is somebody who writes.
type actor struct {
	// name in the tables; of a person, also the user name.
	name string
	// namespace and account of a service account; none for a person.
	namespace, account string
	// pod that the account's token is bound to, as the kubelet would have it; none: unbound.
	pod string
}

var (
	// The administrator is of the group system:masters, which no role binds.
	administrator = actor{name: "an administrator"}
	root          = actor{name: "root"}      // With the role cluster-admin.
	boss          = actor{name: "boss"}      // With cluster-admin in the namespace.
	owner         = actor{name: "owner"}     // With parley-chat-admin.
	chatter       = actor{name: "chatter"}   // With parley-chat-user.
	approver      = actor{name: "approver"}  // With parley-tool-approver.
	viewer        = actor{name: "viewer"}    // With parley-chat-viewer.
	governor      = actor{name: "governor"}  // With parley-quota-admin, in the whole cluster.
	curator       = actor{name: "curator"}   // With parley-class-admin.
	debugger      = actor{name: "debugger"}  // With parley-debug-viewer.
	redactor      = actor{name: "redactor"}  // With parley-redact.
	templater     = actor{name: "templater"} // With parley-template-author: creates no pods.
	restorer      = actor{name: "restorer"}  // With parley-restore.
	// May write statuses, and may not restore.
	statusWriter = actor{name: "status-writer"}
	manager      = actor{name: "the manager", namespace: "parley-system", account: "parley-manager"}
	impostor     = actor{name: "an account of the manager's name", namespace: ns, account: "parley-manager"}
	// With cluster-admin, as tools that deploy often have it.
	deployer = actor{name: "a tool that deploys", namespace: otherNS, account: "deployer"}
	gateway  = actor{name: "the gateway", namespace: "parley-system", account: "parley-gateway"}
	podA     = actor{name: "generation pod a", namespace: ns, account: podspec.ServiceAccount, pod: "parley-generation-a"}
	podB     = actor{name: "generation pod b", namespace: ns, account: podspec.ServiceAccount, pod: "parley-generation-b"}
	podC     = actor{name: "a generation pod elsewhere", namespace: otherNS, account: podspec.ServiceAccount,
		pod: "parley-generation-c"}
	podless = actor{name: "a token of no pod", namespace: ns, account: podspec.ServiceAccount}
)

// username is the name by which the API server knows the actor.
func (a actor) username() string {
	switch {
	case a.account != "":
		return "system:serviceaccount:" + a.namespace + ":" + a.account
	case a == administrator:
		return "admin"
	}
	return a.name
}

// config reaches the cluster as the actor: a service account has a token of its own, a person is impersonated.
func (a actor) config(ctx context.Context) (*rest.Config, error) {
	cfg := rest.CopyConfig(cluster.Config)
	switch {
	case a == administrator:
	case a.account == "":
		cfg.Impersonate = rest.ImpersonationConfig{UserName: a.name, Groups: []string{"system:authenticated"}}
	default:
		token, err := a.token(ctx)
		if err != nil {
			return nil, err
		}
		cfg = rest.AnonymousClientConfig(cluster.Config)
		cfg.BearerToken, cfg.QPS = token, -1
	}
	return cfg, nil
}

// actorClients keeps the client of each actor, because a new one needs a token.
type actorClients struct {
	mu      sync.Mutex
	clients map[actor]client.Client
}

var clients = actorClients{clients: map[actor]client.Client{}}

// forget removes the client of a pod that is created again: its token is bound to the former pod.
func (c *actorClients) forget(a actor) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.clients, a)
}

// client returns the actor's client.
func (a actor) client(ctx context.Context) (client.Client, error) {
	if a == administrator {
		return cluster.Client, nil
	}
	clients.mu.Lock()
	defer clients.mu.Unlock()
	if c, ok := clients.clients[a]; ok {
		return c, nil
	}
	cfg, err := a.config(ctx)
	if err != nil {
		return nil, err
	}
	c, err := newClient(cfg)
	if err != nil {
		return nil, fmt.Errorf("creating a client of %s: %w", a.name, err)
	}
	clients.clients[a] = c
	return c, nil
}

// scheme has the kinds that the clients know.
var scheme = controllers.Scheme()

// newClient returns a client that shares the administrator's discovery of kinds: under the race detector, a discovery
// and a scheme cost more CPU time than most writes.
func newClient(cfg *rest.Config) (client.Client, error) {
	return client.New(cfg, client.Options{Scheme: scheme, Mapper: cluster.Client.RESTMapper()})
}

// kubelet is a client of a node, which alone gets tokens of generation pods. Nodes have their rights by the node
// authorizer, which this API server does not run: hence the second group.
func kubelet() (client.Client, error) {
	cfg := rest.CopyConfig(cluster.Config)
	cfg.Impersonate = rest.ImpersonationConfig{UserName: "system:node:worker",
		Groups: []string{"system:nodes", "system:masters"}}
	c, err := newClient(cfg)
	if err != nil {
		return nil, fmt.Errorf("creating a client of a kubelet: %w", err)
	}
	return c, nil
}

// bound is the reference of tokens to the actor's pod; nil if it has none.
func (a actor) bound(ctx context.Context) (*authenticationv1.BoundObjectReference, error) {
	if a.pod == "" {
		return nil, nil
	}
	var p corev1.Pod
	if err := cluster.Client.Get(ctx, client.ObjectKey{Namespace: a.namespace, Name: a.pod}, &p); err != nil {
		return nil, fmt.Errorf("reading pod %s: %w", a.pod, err)
	}
	return &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID}, nil
}

func (a actor) token(ctx context.Context) (token string, err error) {
	request := &authenticationv1.TokenRequest{}
	if request.Spec.BoundObjectRef, err = a.bound(ctx); err != nil {
		return "", err
	}
	issuer := cluster.Client
	if a.account == podspec.ServiceAccount {
		if issuer, err = kubelet(); err != nil {
			return "", err
		}
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: a.namespace, Name: a.account}}
	if err := issuer.SubResource("token").Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("requesting a token of %s: %w", a.name, err)
	}
	return request.Status.Token, nil
}

// as is the actor's client.
func as(t testing.TB, a actor) client.Client {
	t.Helper()
	c, err := a.client(t.Context())
	check.OK(t, err)
	return c
}

// action is a request to the API server.
type action = func(context.Context, client.Client) error

// write is one line of a table: who does what, and the words of the refusal; allowed without them.
type write struct {
	who     actor
	does    string
	act     action
	refused string
}

// noRight begins what RBAC says to those who have not the right at all; the policies are not even asked.
const noRight = "forbidden: User "

func try(t *testing.T, writes []write) {
	t.Helper()
	for _, w := range writes {
		t.Run(w.who.name+" "+w.does, func(t *testing.T) {
			checkRefusal(t, w.act(t.Context(), as(t, w.who)), w.refused)
		})
	}
}

// checkRefusal checks that the API server refused a request with the words; without words, that it did not refuse it.
func checkRefusal(t *testing.T, err error, words string) {
	t.Helper()
	switch {
	case words == "" && err != nil:
		t.Errorf("refused: %.600v", err)
	case words != "" && !says(err, words):
		t.Errorf("the refusal does not say %q: %.600v", words, err)
	}
}

func creates(o client.Object) action {
	return func(ctx context.Context, c client.Client) error {
		return c.Create(ctx, o.DeepCopyObject().(client.Object))
	}
}

// updates changes the object by an update.
func updates[T client.Object](o T, change func(T)) action {
	return func(ctx context.Context, c client.Client) error {
		now := o.DeepCopyObject().(T)
		if err := c.Get(ctx, client.ObjectKeyFromObject(o), now); err != nil {
			return err
		}
		change(now)
		return c.Update(ctx, now)
	}
}

func deletes(o client.Object) action {
	return func(ctx context.Context, c client.Client) error {
		return c.Delete(ctx, o.DeepCopyObject().(client.Object))
	}
}

// patches sends a merge patch.
func patches(o client.Object, body string) action {
	return func(ctx context.Context, c client.Client) error {
		return c.Patch(ctx, o.DeepCopyObject().(client.Object), client.RawPatch("application/merge-patch+json", []byte(body)))
	}
}
