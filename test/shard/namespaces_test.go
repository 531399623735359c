// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/controllers"
	"parley.dev/parley/internal/kube/index"
	"parley.dev/parley/internal/kube/shard"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/faultclient"
	"parley.dev/parley/test/kit/testcluster"
)

// places records which namespaces requests are about, and which resources are asked for without a namespace.
type places struct {
	mu                  sync.Mutex
	namespaces, cluster map[string]bool
}

// recorded is a transport that records places.
type recorded struct {
	*places
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (r recorded) RoundTrip(q *http.Request) (*http.Response, error) {
	r.record(strings.Split(strings.Trim(q.URL.Path, "/"), "/"))
	return r.next.RoundTrip(q)
}

// record reads a path: /api/v1/[namespaces/<namespace>/]<resource>, or /apis/<group>/<version>/ and the same.
func (p *places) record(path []string) {
	prefix := map[string]int{"api": 2, "apis": 3}[path[0]]
	if prefix == 0 || len(path) <= prefix { // It is discovery.
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if path[prefix] == "namespaces" {
		p.namespaces[path[prefix+1]] = true
	} else {
		p.cluster[path[prefix]] = true
	}
}

// seen returns the namespaces and the cluster-wide resources, sorted.
func (p *places) seen() (namespaces, cluster []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.namespaces)), slices.Sorted(maps.Keys(p.cluster))
}

// user returns a configuration of a user without rights, and what is asked with it.
func user(name string) (*rest.Config, *places) {
	asked := &places{namespaces: map[string]bool{}, cluster: map[string]bool{}}
	cfg := rest.CopyConfig(cluster.Config)
	cfg.Impersonate.UserName = name
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return recorded{asked, next} })
	return cfg, asked
}

// allowIn gives the user the rights of the manager in these namespaces alone, as docs/how-to/installing.md says.
func allowIn(t *testing.T, user string, namespaces []string) {
	t.Helper()
	subjects := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}}
	role := func(name string) rbacv1.RoleRef {
		return rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}
	}
	for _, ns := range namespaces {
		cluster.Create(t, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "parley-manager"},
			Subjects: subjects, RoleRef: role("parley-manager")})
	}
	cluster.Create(t, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: user}, Subjects: subjects,
		RoleRef: role("parley-manager-cluster")})
}

var rolesCreated sync.Once

// createRoles creates the manager's two ClusterRoles, which stay.
func createRoles(t *testing.T) {
	t.Helper()
	rolesCreated.Do(func() {
		for _, o := range testcluster.Kustomized(t, "resources: [CONFIG/default]") {
			if o.GetKind() == "ClusterRole" && strings.HasPrefix(o.GetName(), "parley-manager") {
				cluster.Create(t, o)
			}
		}
	})
}

// ignored creates a chat in a namespace that no manager works for, and returns how to check that nothing came of it.
func ignored(t *testing.T, namespace string) (verify func()) {
	t.Helper()
	chat := chattest.In(namespace, chattest.Chat("ignored", chattest.Prompt("Is anybody there?")))
	cluster.Create(t, chat)
	t.Cleanup(func() { // Managers of all namespaces, in other tests, would start its turn.
		if err := cluster.Client.Delete(context.Background(), chat); err != nil {
			t.Errorf("deleting the chat in %s: %v", namespace, err)
		}
	})
	return func() {
		t.Helper()
		before := chat.ResourceVersion
		check.OK(t, cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(chat), chat))
		if chat.ResourceVersion != before {
			t.Errorf("the chat in %s was changed: %+v", namespace, chat.Status)
		}
		for _, list := range []client.ObjectList{&v1beta1.ChatMessageList{}, &corev1.PodList{},
			&corev1.ServiceAccountList{}, &rbacv1.RoleList{}} {
			check.OK(t, cluster.Client.List(t.Context(), list, client.InNamespace(namespace)))
			if n := meta.LenList(list); n > 0 {
				t.Errorf("there are %d objects in the %T of %s", n, list, namespace)
			}
		}
	}
}

// holdsOnly checks that nothing in the manager's caches is of a namespace outside the list.
func holdsOnly(t *testing.T, m *manager, namespaces []string) {
	t.Helper()
	for _, list := range []client.ObjectList{&v1beta1.ChatList{}, &v1beta1.ChatMessageList{},
		&v1beta1.ChatModelConfigList{}, &v1beta1.ChatQuotaList{}, &corev1.PodList{}, &rbacv1.RoleList{}} {
		check.OK(t, m.view.List(t.Context(), list))
		_ = meta.EachListItem(list, func(o runtime.Object) error {
			if object := o.(client.Object); !slices.Contains(namespaces, object.GetNamespace()) {
				t.Errorf("the manager of %v holds %T %s of %s", namespaces, o, object.GetName(), object.GetNamespace())
			}
			return nil
		})
	}
}

// tellsHowNewItIs checks that the manager's cache has an informer for each namespace, and that each of them tells how
// new it is: without that the API server would be asked for what is absent in the cache.
func tellsHowNewItIs(t *testing.T, m *manager) {
	t.Helper()
	informer, err := m.view.GetInformer(t.Context(), &v1beta1.ChatClass{})
	check.OK(t, err)
	parts, ok := informer.(index.Parts)
	if !ok || len(parts.Parts()) != len(m.Namespaces) {
		t.Fatalf("the informers of %v are %T", m.Namespaces, informer)
	}
	for _, part := range parts.Parts() {
		if part.GetStore().LastStoreSyncResourceVersion() == "" {
			t.Errorf("an informer of %v does not tell how new it is", m.Namespaces)
		}
	}
}

// TestManagersOfTwoListsTouchNothingElse gives each manager the rights of its own namespaces alone, so that whatever
// else it asked for would be refused.
func TestManagersOfTwoListsTouchNothingElse(t *testing.T) {
	all := namespaces(t, "listed", 5, 1)
	lists, outside := [][]string{all[:2], all[2:4]}, all[4]
	createRoles(t)
	untouched := ignored(t, outside)
	var managers []*manager
	var asked []*places
	for i, list := range lists {
		name := []string{"manager-a", "manager-b"}[i]
		allowIn(t, name, list)
		cfg, seen := user(name)
		managers = append(managers, startAs(t, cfg, shard.Scope{Namespaces: list}, faultclient.Options{}))
		asked = append(asked, seen)
	}
	defer stopAll(managers)
	allow(t, 10)
	for _, ns := range all {
		cluster.Create(t, chattest.In(ns, &v1beta1.ChatQuota{ObjectMeta: metav1.ObjectMeta{Name: "quota"},
			Spec: v1beta1.ChatQuotaSpec{Generating: v1beta1.GeneratingLimits{Chats: new(int32(5))}}}))
	}
	k := talkIn(t, all[:4], 3)
	eventually(t, "all turns are over", func() bool { return k.turnsIn(0, 1) == 4*3 })
	k.fallSilent()
	k.check()
	untouched()
	for i, list := range lists {
		holdsOnly(t, managers[i], list)
		tellsHowNewItIs(t, managers[i])
		namespaces, clusterWide := asked[i].seen()
		if !slices.Equal(namespaces, list) || !slices.Equal(clusterWide, []string{"clusterchatquotas"}) {
			t.Errorf("the manager of %v asks for %v, and for %v of the cluster", list, namespaces, clusterWide)
		}
	}
}

// Somebody may have deleted the namespace, or the RoleBinding in it.
func TestNamespaceWithoutRightsIsOmitted(t *testing.T) {
	all := namespaces(t, "unread", 2, 1)
	createRoles(t)
	allowIn(t, "manager-c", all[:1])
	cfg, _ := user("manager-c")
	var scope shard.Scope
	var omitted []string
	eventually(t, "the rights are in force", func() bool {
		var err error
		scope, omitted, err = controllers.Readable(t.Context(), cfg, shard.Scope{Namespaces: all})
		return err == nil && len(omitted) == 1
	})
	check.Equal(t, "namespaces", [][]string{all[:1], all[1:]}, [][]string{scope.Namespaces, omitted})
	defer startAs(t, cfg, scope, faultclient.Options{}).stop()
	allow(t, 10)
	k := talkIn(t, all[:1], 2)
	eventually(t, "all turns are over", func() bool { return k.turnsIn(0, 1) == 2 })
	k.fallSilent()
	k.check()

	asker, err := client.New(cfg, client.Options{Scheme: controllers.Scheme()})
	check.OK(t, err)
	ended := make(chan error, 1)
	go func() { ended <- controllers.AwaitReadable(t.Context(), asker, omitted, 10*time.Millisecond) }()
	cluster.Create(t, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: all[1], Name: "parley-manager"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "manager-c"}},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "parley-manager"}})
	check.Contains(t, fmt.Sprint(<-ended), all[1])
}

func TestANamespaceOfTheListMayComeLater(t *testing.T) {
	list := []string{"later-0", "later-1"}
	defer start(t, shard.Scope{Namespaces: list}).stop()
	k := talkIn(t, namespaces(t, "later", 2, 1), 2)
	eventually(t, "all turns are over", func() bool { return k.turnsIn(0, 1) == 2*2 })
	k.fallSilent()
	k.check()
}

// TestShardsOfAListKeepTheLimitTogether has the chats of two shards wait for the one slot that there is.
func TestShardsOfAListKeepTheLimitTogether(t *testing.T) {
	all := namespaces(t, "both", 2, 2)
	first := slices.IndexFunc(all, func(ns string) bool { return ownerOf(ns, 2) == 0 })
	second := slices.IndexFunc(all, func(ns string) bool { return ownerOf(ns, 2) == 1 })
	list := []string{all[first], all[second]}
	slices.Sort(list)
	for i, ns := range all {
		if i != first && i != second {
			defer ignored(t, ns)()
		}
	}
	var managers []*manager
	for _, s := range shardsOf(2) {
		managers = append(managers, start(t, shard.Scope{Shard: s, Namespaces: list}))
	}
	defer stopAll(managers)
	allow(t, 1)
	for i, ns := range list {
		cluster.Create(t, chattest.In(ns, chattest.Chat("chat", chattest.Prompt("first"))))
		eventually(t, "the chat generates or waits", func() bool {
			generating, waiting := chatsIn(t, list)
			return len(generating) == 1 && len(waiting) == i
		})
	}
	for _, ns := range list {
		eventually(t, "the chat generates", func() bool {
			generating, _ := chatsIn(t, []string{ns})
			return len(generating) == 1
		})
		generating, _ := chatsIn(t, []string{ns})
		cluster.Create(t, chattest.Answer(&generating[0], chattest.Says("Fine.")))
	}
	eventually(t, "both are answered", func() bool {
		generating, waiting := chatsIn(t, list)
		return len(generating)+len(waiting) == 0
	})
	for _, m := range managers {
		holdsItsOwn(t, m)
	}
}

// TestShardWithoutListedNamespacesIsIdle: its own list is empty, which must not mean all namespaces.
func TestShardWithoutListedNamespacesIsIdle(t *testing.T) {
	all := namespaces(t, "single", 1, 2)
	list := []string{all[0]}
	idle := shard.Shard{Index: 1 - ownerOf(all[0], 2), Total: 2}
	untouched := ignored(t, all[1])
	m := start(t, shard.Scope{Shard: idle, Namespaces: list})
	working := start(t, shard.Scope{Shard: shard.Shard{Index: 1 - idle.Index, Total: 2}, Namespaces: list})
	defer stopAll([]*manager{m, working})
	k := talkIn(t, list, 2)
	eventually(t, "all turns are over", func() bool { return k.turnsIn(0, 1) == 2 })
	k.fallSilent()
	k.check()
	untouched()
	if m.worked() {
		t.Errorf("the manager of %+v writes %v", m.Scope, m.process.Writes())
	}
}
