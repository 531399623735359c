// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/realgateway"
	"parley.dev/parley/test/kit/testmanager"
)

const sharesWithJane = `{"spec":{"sharing":[{"kind":"User","name":"jane"}]}}`

// Security (an author of messages): cannot let others read a chat without the verb share on it. Also
// TestChatsOwnAccountDoesNotShareIt of test/admission.
func TestSharingTakesItsOwnVerb(t *testing.T) {
	t.Parallel()
	chat, shared := newChat(unique("chat")), newChat(unique("chat"))
	shared.Spec.Sharing = []v1beta1.ChatShare{{Kind: v1beta1.ShareGroup, Name: "system:masters"}}
	mustCreate(t, chatter, chat)
	const mayNot = "may not share chat"
	try(t, []write{
		{chatter, "shares a chat", patches(chat, sharesWithJane), mayNot},
		{chatter, "creates a shared chat", creates(shared), mayNot},
		{viewer, "shares a chat", patches(chat, sharesWithJane), noRight},
		{manager, "shares a chat", patches(chat, sharesWithJane), "denied request"},
		{owner, "shares with a user in a namespace",
			patches(chat, `{"spec":{"sharing":[{"kind":"User","name":"jane","namespace":"x"}]}}`), "leave namespace out"},
		{owner, "shares with an impossible account",
			patches(chat, `{"spec":{"sharing":[{"kind":"ServiceAccount","name":"No Account"}]}}`), "lower-case letters"},
		{owner, "shares with an account in an impossible namespace", patches(chat,
			`{"spec":{"sharing":[{"kind":"ServiceAccount","name":"a","namespace":"No"}]}}`), "such as team-a"},
		{owner, "shares a chat", patches(chat, sharesWithJane), ""},
		{owner, "creates a shared chat", creates(shared), ""},
		{chatter, "changes another field", patches(chat, `{"spec":{"title":"Shared"}}`), ""},
		{chatter, "stops the sharing", patches(chat, `{"spec":{"sharing":null}}`), mayNot},
		{owner, "stops the sharing", patches(chat, `{"spec":{"sharing":null}}`), ""},
	})
}

func TestChatsOwnAccountDoesNotShareIt(t *testing.T) {
	t.Parallel()
	bot := actor{name: "the chat's account", namespace: ns, account: unique("bot")}
	cluster.Account(t, ns, bot.account)
	cluster.Bind(t, ns, bot.account, "ClusterRole", "parley-chat-admin")
	chat := newChat(unique("chat"))
	chat.Spec.Kubernetes = &v1beta1.KubernetesAccess{ServiceAccountName: bot.account}
	mustCreate(t, boss, chat)
	const refused = "does not share the chat"
	try(t, []write{
		{bot, "shares its chat", patches(chat, sharesWithJane), refused},
		{bot, "shares its chat and leaves it", patches(chat,
			`{"spec":{"kubernetes":null,"sharing":[{"kind":"User","name":"jane"}]}}`), refused},
	})
}

// Security (a reader of a shared chat): cannot be given more by the manager than to read one chat and those below it.
func TestManagerGrantsOnlyReadingOfOneFamily(t *testing.T) {
	t.Parallel()
	owned := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: ns, Name: name, OwnerReferences: []metav1.OwnerReference{{
			APIVersion: "parley.dev/v1beta1", Kind: "Chat", Name: "c", UID: "u", Controller: new(true)}}}
	}
	role := func(name string, change func(*rbacv1.PolicyRule)) *rbacv1.Role {
		rule := rbacv1.PolicyRule{APIGroups: []string{"parley.dev"}, Resources: []string{"chats", "chats/stream"},
			ResourceNames: []string{"c"}, Verbs: []string{"get"}}
		change(&rule)
		return &rbacv1.Role{ObjectMeta: owned(name), Rules: []rbacv1.PolicyRule{rule}}
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: owned("parley-share-c"), Subjects: person("jane"),
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: podspec.ServiceAccount}}
	orphan := role("parley-share-c", func(*rbacv1.PolicyRule) {})
	orphan.OwnerReferences = nil
	const byName = "lets its readers read chats by name"
	try(t, []write{
		{manager, "lets readers read messages", applies(role("parley-share-c", func(r *rbacv1.PolicyRule) {
			r.Resources = []string{"chatmessages"}
		})), byName},
		{manager, "lets readers read all chats", applies(role("parley-share-c", func(r *rbacv1.PolicyRule) {
			r.ResourceNames = nil
		})), byName},
		{manager, "lets readers change chats", applies(role("parley-share-c", func(r *rbacv1.PolicyRule) {
			r.Resources, r.Verbs = []string{"chats"}, []string{"patch"}
		})), byName},
		{manager, "lets readers read Secrets", applies(role("parley-share-c", func(r *rbacv1.PolicyRule) {
			r.APIGroups, r.Resources = []string{""}, []string{"secrets"}
		})), "attempting to grant RBAC permissions not currently held"},
		{manager, "creates a Role of no chat", applies(orphan), "is controlled by the Chat"},
		{manager, "creates a Role for another chat", applies(role("parley-share-d", func(*rbacv1.PolicyRule) {})),
			"is controlled by the Chat"},
		{manager, "gives readers the Role of pods", applies(binding), byName},
		{manager, "deletes another binding", deletes(inNamespace("owner", ns, "parley-chat-admin")),
			"writes no Role or RoleBinding but"},
	})
}

// shared is a world with a manager whose clock the test sets, a gateway, and the reader of a chat.
type shared struct {
	*testing.T
	team, token string
	gateway     *realgateway.Gateway
	reader      actor
	// ahead is by how much the manager's clock is ahead.
	ahead atomic.Int64
}

func newShared(t *testing.T, team string) *shared {
	s := &shared{T: t, team: team, reader: actor{name: "the reader", namespace: otherNS, account: unique("reader")}}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: team}}, inNamespace(owner.name, team, "parley-chat-admin"),
		chattest.In(team, chattest.Config("default", chattest.Default)),
	} {
		mustCreate(t, administrator, o)
	}
	cluster.Account(t, otherNS, s.reader.account)
	s.token = cluster.Token(t, otherNS, s.reader.account)
	startManager(t, func(o *testmanager.Options) {
		o.Controllers.Now = func() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) }
	})
	cfg, err := gateway.config(t.Context())
	check.OK(t, err)
	s.gateway = realgateway.Start(t, cfg, "parley-system")
	return s
}

// share lets the reader read the chat; nil: without end.
func (s *shared) share(chat *v1beta1.Chat, until *metav1.Time) {
	s.Helper()
	chat.Spec.Sharing = []v1beta1.ChatShare{{Kind: v1beta1.ShareServiceAccount, Name: s.reader.account,
		Namespace: otherNS, Until: until}}
	awaitAllowed(s.Context(), s.T, owner, func(ctx context.Context, c client.Client) error {
		return updates(chat, func(now *v1beta1.Chat) { now.Spec.Sharing = chat.Spec.Sharing })(ctx, c)
	})
}

// isShared waits until the chat reports the reason in condition Shared; empty: it has no such condition.
func (s *shared) isShared(chat *v1beta1.Chat, reason v1beta1.ConditionReason) {
	s.Helper()
	await(s.T, "sharing is "+string(reason), chat, func() bool {
		c := apimeta.FindStatusCondition(chat.Status.Conditions, v1beta1.ConditionShared)
		return c == nil && reason == "" || c != nil && c.Reason == string(reason)
	})
}

// follow is the status of the reader's stream, and its first events.
func (s *shared) follow(ctx context.Context, chat string) (status int, events string) {
	s.Helper()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		fmt.Sprintf("%s/v1beta1/namespaces/%s/chats/%s/stream", s.gateway.URL, s.team, chat), nil)
	check.OK(s, err)
	request.Header.Set("Authorization", "Bearer "+s.token)
	answer, err := http.DefaultClient.Do(request)
	check.OK(s, err)
	defer func() { _ = answer.Body.Close() }()
	for lines := bufio.NewScanner(answer.Body); lines.Scan() && answer.StatusCode == http.StatusOK; {
		events += lines.Text() + "\n"
		if strings.Contains(lines.Text(), "Fine.") {
			break
		}
	}
	return answer.StatusCode, events
}

// mayFollow waits until the gateway lets the reader follow the chat, or does not.
func (s *shared) mayFollow(chat string, may bool) {
	s.Helper()
	want := map[bool]int{true: http.StatusOK, false: http.StatusForbidden}[may]
	check.OK(s, until(s.Context(), fmt.Sprintf("the stream of %s answers %d", chat, want), func(ctx context.Context) bool {
		status, _ := s.follow(ctx, chat)
		return status == want
	}))
}

// hasRole reports whether the API server has a Role or a RoleBinding of the chat.
func (s *shared) hasRole(ctx context.Context, chat string) bool {
	s.Helper()
	named := metav1.ObjectMeta{Namespace: s.team, Name: "parley-share-" + chat}
	for _, o := range []client.Object{&rbacv1.Role{ObjectMeta: named}, &rbacv1.RoleBinding{ObjectMeta: named}} {
		if err := cluster.Client.Get(ctx, client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
			return true
		}
	}
	return false
}

// answered creates a chat, and plays the generation pod that answers it.
func (s *shared) answered(chat *v1beta1.Chat) *v1beta1.Chat {
	s.Helper()
	mustCreate(s.T, administrator, chat)
	await(s.T, chat.Name+" is given to a pod", chat, func() bool { return chat.Status.Generation != nil })
	mustCreate(s.T, actor{name: "the pod", namespace: s.team, account: podspec.ServiceAccount,
		pod: chat.Status.Generation.Pod}, result(chat))
	await(s.T, chat.Name+" is answered", chat, func() bool { return chat.Status.Generation == nil })
	return chat
}

// denyReaders has a policy of the cluster refuse bindings of a user in a namespace, as organizations do.
func denyReaders(t *testing.T, team, user string) {
	t.Helper()
	named, fail := metav1.ObjectMeta{Name: team}, admissionv1.Fail
	mustCreate(t, administrator, &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: named,
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: &fail,
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Create, admissionv1.Update},
					Rule: admissionv1.Rule{APIGroups: []string{rbacv1.GroupName}, APIVersions: []string{"*"},
						Resources: []string{"rolebindings"}},
				},
			}}},
			Validations: []admissionv1.Validation{{
				Expression: fmt.Sprintf("object.?subjects.orValue([]).all(s, s.name != %q)", user)}},
		}})
	mustCreate(t, administrator, &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: named,
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: team, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			MatchResources: &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{
				MatchLabels: map[string]string{corev1.LabelMetadataName: team}}},
		}})
	check.OK(t, until(t.Context(), "the policy is in force", func(ctx context.Context) bool {
		return cluster.Client.Create(ctx, inNamespace(user, team, "view"), client.DryRunAll) != nil
	}))
}

// TestRefusedReaderDoesNotKeepOthersLonger adds a reader whom a policy of the cluster refuses in the RoleBinding.
func TestRefusedReaderDoesNotKeepOthersLonger(t *testing.T) {
	const team = "refused-sharers"
	s := newShared(t, team)
	denyReaders(t, team, "outsider")
	chat := s.answered(chattest.In(s.team, chattest.Chat("c", chattest.Prompt("hello"))))
	s.share(chat, nil)
	s.isShared(chat, v1beta1.ReasonShared)
	s.mayFollow("c", true)
	awaitAllowed(t.Context(), t, owner, patches(chat,
		`{"spec":{"sharing":[{"kind":"User","name":"outsider"}]}}`))
	s.isShared(chat, v1beta1.ReasonSharingFailed)
	s.mayFollow("c", false)
}

// Security (a reader of a shared chat): can follow the chat and its sub-chats until access ends.
//
// Security (a reader of a shared chat): cannot list, write, approve, or read other chats and Secrets.
//
// TestReaderFollowsASharedChatUntilItsEnd runs the manager and the gateway with the rights of their own accounts.
func TestReaderFollowsASharedChatUntilItsEnd(t *testing.T) {
	const team = "sharers"
	s := newShared(t, team)
	in := func(name string, change ...func(*v1beta1.Chat)) *v1beta1.Chat {
		return chattest.In(team, chattest.Chat(name, append(change, chattest.Prompt("hello"))...))
	}
	chat, other := s.answered(in("c")), in("other")
	mustCreate(t, administrator, other)
	if status, _ := s.follow(t.Context(), "c"); status != http.StatusForbidden {
		t.Errorf("before the chat is shared, the stream answers %d", status)
	}
	s.share(chat, &metav1.Time{Time: time.Now().Add(time.Hour)})
	s.isShared(chat, v1beta1.ReasonShared)
	s.mayFollow("c", true)
	if _, events := s.follow(t.Context(), "c"); !strings.Contains(events, "hello") || !strings.Contains(events, "Fine.") {
		t.Errorf("the transcript is %s", events)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: team, Name: "key"}}
	all := client.InNamespace(team)
	try(t, []write{
		{s.reader, "reads the chat", gets(chat), ""},
		{s.reader, "reads another chat", gets(other), noRight},
		{s.reader, "changes the chat", patches(chat, `{"spec":{"title":"x"}}`), noRight},
		{s.reader, "shares the chat", patches(chat, sharesWithJane), noRight},
		{s.reader, "says something", creates(chattest.In(team, chattest.User("c", "m"))), noRight},
		{s.reader, "approves", creates(chattest.In(team, chattest.Decides("c", "a", "call_1", v1beta1.DecisionApprove))),
			noRight},
		{s.reader, "reads a Secret", gets(secret), noRight},
		{s.reader, "lists messages", func(ctx context.Context, c client.Client) error {
			return c.List(ctx, &v1beta1.ChatMessageList{}, all)
		}, noRight},
	})
	s.mayFollow("other", false)

	mustCreate(t, administrator, in("sub", chattest.ChildOf("c")))
	s.mayFollow("sub", true)

	s.ahead.Store(int64(2 * time.Hour))
	// Its time passes with the manager's clock. Any change wakes the chat before the real hour is over.
	awaitAllowed(t.Context(), t, owner, patches(chat, `{"spec":{"title":"Later"}}`))
	s.isShared(chat, v1beta1.ReasonSharingEnded)
	s.mayFollow("c", false)
	s.mayFollow("sub", false)

	s.share(chat, nil)
	s.isShared(chat, v1beta1.ReasonShared)
	s.mayFollow("c", true)
	awaitAllowed(t.Context(), t, owner, patches(chat, `{"spec":{"sharing":null}}`))
	s.isShared(chat, "")
	s.mayFollow("c", false)
	if s.hasRole(t.Context(), "c") {
		t.Error("a Role or a RoleBinding stays after the sharing")
	}

	s.share(chat, &metav1.Time{Time: time.Now().Add(2*time.Hour + 4*time.Second)})
	s.isShared(chat, v1beta1.ReasonShared)
	s.isShared(chat, v1beta1.ReasonSharingEnded) // By its own time alone.

	s.share(chat, nil)
	s.isShared(chat, v1beta1.ReasonShared)
	check.OK(t, cluster.Client.Delete(t.Context(), chat, client.PropagationPolicy(metav1.DeletePropagationOrphan)))
	check.OK(t, until(t.Context(), "the Role goes with the chat", func(ctx context.Context) bool {
		return !s.hasRole(ctx, "c")
	}))
}
