// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

// createsAs creates a copy of the object that says that somebody created it.
func createsAs(o client.Object, somebody string) action {
	return func(ctx context.Context, c client.Client) error {
		o := o.DeepCopyObject().(client.Object)
		o.SetAnnotations(map[string]string{createdBy: somebody, "kept": "yes"})
		return c.Create(ctx, o)
	}
}

// sets patches the annotation to the JSON value.
func sets(o client.Object, value string) action {
	return patches(o, `{"metadata":{"annotations":{"`+createdBy+`":`+value+`}}}`)
}

// stamp is the annotation's value in the cluster.
func stamp(t *testing.T, o client.Object) string {
	t.Helper()
	o = o.DeepCopyObject().(client.Object)
	check.OK(t, cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o))
	return o.GetAnnotations()[createdBy]
}

func TestWhatPeopleCreateIsStampedWithTheirName(t *testing.T) {
	needsStamp(t)
	t.Parallel()
	const chat = "stamped"
	for _, c := range []struct {
		who    actor
		what   string
		object client.Object
	}{
		{chatter, "a chat", newChat(unique("chat"))},
		{owner, "a chat", newChat(unique("chat"))},
		{root, "a chat", newChat(unique("chat"))},
		{chatter, "a message", say(chat)},
		{chatter, "a client's tool result", toolOutput(chat)},
		{manager, "the message of a prompt", say(chat)},
		{approver, "an approval", approve(chat)},
		{owner, "an approval", approve(chat)},
	} {
		t.Run(c.who.name+" creates "+c.what, func(t *testing.T) {
			mustCreate(t, c.who, c.object)
			check.Equal(t, "author", c.who.username(), stamp(t, c.object))
		})
		t.Run(c.who.name+" creates "+c.what+" in another's name", func(t *testing.T) {
			forged := c.object.DeepCopyObject().(client.Object)
			forged.SetName(forged.GetName() + "-forged")
			forged.SetResourceVersion("")
			check.OK(t, createsAs(forged, "somebody")(t.Context(), as(t, c.who)))
			check.Equal(t, "author", c.who.username(), stamp(t, forged))
		})
	}
}

func TestOnlyManagerMaySetPromptAuthor(t *testing.T) {
	needsStamp(t)
	prompt, other := say("stamped"), say("stamped")
	prompt.Name = unique("handed") + "-prompt"
	try(t, []write{
		{root, "names the author of a prompt", createsAs(prompt, chatter.username()), "names that end in -prompt"},
		{impostor, "names the author of a prompt", createsAs(prompt, chatter.username()), "names that end in -prompt"},
		{manager, "names the author of a prompt", createsAs(prompt, chatter.username()), ""},
		{manager, "names the author of another message", createsAs(other, chatter.username()), ""},
	})
	check.Equal(t, "author", chatter.username(), stamp(t, prompt))
	check.Equal(t, "author", manager.username(), stamp(t, other))
}

func TestUnstampedPromptAuthorIsSetByManagerOnly(t *testing.T) {
	// The rule about the name would refuse first.
	lift(t, "parley-created-by", "parley-messages")
	unstamped, another := say("stamped"), say("stamped")
	unstamped.Name = unique("handed") + "-prompt"
	refusal := ": leave it out"
	try(t, []write{
		{root, "names the author of a prompt, unstamped", createsAs(unstamped, chatter.username()), refusal},
		{impostor, "names the author of a prompt, unstamped", createsAs(unstamped, chatter.username()), refusal},
		{manager, "names the author of another message, unstamped", createsAs(another, chatter.username()), refusal},
		{manager, "names the author of a prompt, unstamped", createsAs(unstamped, chatter.username()), ""},
	})
}

func TestResultRecordsPodInsteadOfAuthor(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	check.Equal(t, "author", "", stamp(t, s.replied))
	check.Equal(t, "pod", podA.pod, s.replied.Spec.Generation.Pod)
	try(t, []write{
		{podA, "answers in a person's name", createsAs(result(s.chat), chatter.username()),
			"which is " + podA.username() + ": leave it out"},
		{chatter, "adds an author to a result", sets(s.replied, `"chatter"`), "cannot change: leave it out"},
	})
}

func TestNobodyChangesTheAuthor(t *testing.T) {
	needsStamp(t)
	t.Parallel()
	s := newScene(t)
	for _, o := range []client.Object{s.chat, s.asked, s.approval} {
		by, refusal := stamp(t, o), noRight
		if o == s.chat { // The manager has a right to change chats: two policies hold it to less.
			refusal = "denied request"
		}
		writes := []write{
			{manager, "takes over", sets(o, `"me"`), refusal},
			{podA, "takes over", sets(o, `"me"`), noRight},
		}
		for _, who := range []actor{owner, boss, root, administrator, impostor} {
			writes = append(writes,
				write{who, "takes over", sets(o, `"me"`), "cannot change: leave it as it is, " + by},
				write{who, "empties the author", sets(o, `""`), "cannot change: leave it as it is, " + by},
				write{who, "leaves the author out", sets(o, `null`), ""},
				write{who, "removes all annotations", patches(o, `{"metadata":{"annotations":null}}`), ""},
			)
		}
		try(t, writes)
		check.Equal(t, "author", by, stamp(t, o))
	}
}

// editor is who changed the object last, as the cluster says.
func editor(t *testing.T, o client.Object) string {
	t.Helper()
	o = o.DeepCopyObject().(client.Object)
	check.OK(t, cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o))
	return o.GetAnnotations()[editedBy]
}

func TestWhoChangesAnothersWordsIsNamed(t *testing.T) {
	needsStamp(t)
	t.Parallel()
	s := newScene(t)
	other := `{"spec":{"content":"other words"}}`
	for _, c := range []struct {
		who    actor
		does   string
		act    action
		object client.Object
		want   string
	}{
		{chatter, "labels a message", patches(s.asked, `{"metadata":{"labels":{"a":"b"}}}`), s.asked, ""},
		{owner, "changes another's words", patches(s.asked, other), s.asked, "owner"},
		{chatter, "says the same again", patches(s.asked, other), s.asked, "owner"},
		{chatter, "takes the editor off", patches(s.asked, `{"metadata":{"annotations":null}}`), s.asked, "owner"},
		{manager, "says where the message stands", patchesStatus(s.asked, `{"status":{"state":"Committed"}}`), s.asked,
			"owner"},
		{chatter, "changes its own words back in the other's name",
			patches(s.asked, `{"metadata":{"annotations":{"`+editedBy+`":"owner"}},"spec":{"content":"mine"}}`), s.asked,
			"chatter"},
		{root, "holds a chat", patches(s.chat, `{"spec":{"suspend":true}}`), s.chat, "root"},
		{owner, "interrupts a chat", patches(s.chat, `{"metadata":{"annotations":{"`+v1beta1.AnnotationInterrupt+`":"1"}}}`),
			s.chat, "root"},
	} {
		t.Run(c.who.name+" "+c.does, func(t *testing.T) {
			check.OK(t, c.act(t.Context(), as(t, c.who)))
			check.Equal(t, "editor", c.want, editor(t, c.object))
		})
	}
	check.Equal(t, "author", chatter.username(), stamp(t, s.asked))
	try(t, []write{
		{owner, "names another editor", patches(s.asked, `{"metadata":{"annotations":{"`+editedBy+`":"chatter2"}}}`),
			"cannot change without it: leave it as it is, chatter"},
		{podA, "names an editor of its result", func(ctx context.Context, c client.Client) error {
			m := result(s.chat)
			m.Annotations = map[string]string{editedBy: "chatter"}
			return c.Create(ctx, m, client.DryRunAll)
		}, ""},
	})
}

func TestAClusterThatCannotStampRefusesFalseEditors(t *testing.T) {
	lift(t, "parley-created-by", "parley-edited-by")
	s := newScene(t)
	signed := func(by, content string) action {
		return patches(s.asked, `{"metadata":{"annotations":{"`+editedBy+`":"`+by+`"}},"spec":{"content":"`+content+`"}}`)
	}
	created := say("none")
	created.Annotations = map[string]string{editedBy: "owner"}
	try(t, []write{
		{chatter, "creates a message that somebody has edited", creates(created), "nobody has yet: leave it out"},
		{owner, "changes words in another's name", signed("chatter", "a"),
			"who changes the object, which is owner: leave it out"},
		{owner, "changes words without saying so", patches(s.asked, `{"spec":{"content":"b"}}`), ""},
		{owner, "changes words in its own name", signed("owner", "c"), ""},
		{chatter, "changes words and leaves the other's name", patches(s.asked, `{"spec":{"content":"d"}}`),
			"which is chatter: leave it out"},
		{chatter, "takes the name off", patches(s.asked, `{"metadata":{"annotations":{"`+editedBy+`":null}}}`),
			"leave it as it is, owner"},
		{chatter, "changes words and takes the other's name off",
			patches(s.asked, `{"metadata":{"annotations":{"`+editedBy+`":null}},"spec":{"content":"e"}}`), ""},
	})
}

func TestAManifestWithoutTheAuthorIsNoDrift(t *testing.T) {
	needsStamp(t)
	t.Parallel()
	for name, flags := range map[string][]string{
		"kubectl apply": {"apply"}, "kubectl apply --server-side": {"apply", "--server-side"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			chat := newChat(unique("drift"))
			manifest := `{"apiVersion":"parley.dev/v1beta1","kind":"Chat","metadata":{"name":"` + chat.Name +
				`","annotations":{"mine":"yes"}},"spec":{"prompt":"hello"}}`
			run := func(args ...string) {
				t.Helper()
				args = append(args, "--as=chatter", "--as-group=system:authenticated", "--namespace="+ns, "--filename=-")
				if out, err := kubectl(t.Context(), manifest, args...); err != nil {
					t.Fatalf("%v\n%s", err, out)
				}
			}
			run(flags...)
			// Stored again the first time that it is applied again, whether it is stamped or not.
			run(flags...)
			version := versionOf(t, chat)
			run(flags...)
			run(append([]string{"diff"}, flags[1:]...)...)
			if now := versionOf(t, chat); now != version {
				t.Errorf("applying again made version %s out of %s", now, version)
			}
			manifest = strings.Replace(manifest, `"prompt":"hello"`, `"prompt":"hello","title":"Other"`, 1)
			run(flags...)
			run(flags...)
			version = versionOf(t, chat)
			run(flags...)
			if now := versionOf(t, chat); now != version || editor(t, chat) != chatter.username() {
				t.Errorf("applying a change again made version %s out of %s, edited by %q", now, version, editor(t, chat))
			}
			run("replace")
			check.Equal(t, "author", chatter.username(), stamp(t, chat))
		})
	}
}

func versionOf(t *testing.T, chat *v1beta1.Chat) string {
	t.Helper()
	check.OK(t, cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(chat), chat))
	return chat.ResourceVersion
}

// TestAClusterThatCannotStampRefusesFalseAuthors plays a cluster before Kubernetes 1.36: the validating policies alone.
func TestAClusterThatCannotStampRefusesFalseAuthors(t *testing.T) {
	lift(t, "parley-created-by", "parley-edited-by")
	signed, unsigned := newChat(unique("signed")), newChat(meta("unsigned").Name)
	try(t, []write{
		{chatter, "creates a chat in another's name", createsAs(newChat("none"), "owner"), "which is chatter: leave it out"},
		{chatter, "creates a message in another's name", createsAs(say("none"), "owner"), "which is chatter: leave it out"},
		{approver, "approves in another's name", createsAs(approve("none"), "owner"), "which is approver: leave it out"},
		{chatter, "signs a chat", createsAs(signed, "chatter"), ""},
		{chatter, "does not sign a chat", creates(unsigned), ""},
		{owner, "takes over", sets(signed, `"owner"`), "cannot change: leave it as it is, chatter"},
		{owner, "removes the author", sets(signed, `null`), "cannot change: leave it as it is, chatter"},
		{owner, "signs what somebody else created", sets(unsigned, `"owner"`), "cannot change: leave it out"},
		{chatter, "changes a chat", patches(signed, `{"spec":{"suspend":true}}`), ""},
	})
	check.Equal(t, "author", "chatter,", stamp(t, signed)+","+stamp(t, unsigned))
}

func TestInvalidObjectIsRefusedWithItsField(t *testing.T) {
	t.Parallel()
	for manifest, words := range map[string]string{
		`{"kind":"ChatMessage","metadata":{"name":"bad"}}`:                                                   "spec: Required value",
		`{"kind":"ChatMessage","metadata":{"name":"bad"},"spec":{"chatRef":{"name":"c"},"content":7}}`:       "spec.content: Invalid value",
		`{"kind":"Chat","metadata":{"name":"bad","annotations":null},"spec":{"limits":{"maxSteps":"many"}}}`: "spec.limits.maxSteps: Invalid value",
		`{"kind":"ToolApproval","metadata":{"name":"bad","annotations":{}},"spec":{"decision":"Maybe"}}`:     "spec.decision: Unsupported value",
	} {
		manifest = strings.Replace(manifest, `{"kind"`, `{"apiVersion":"parley.dev/v1beta1","kind"`, 1)
		if _, err := kubectl(t.Context(), manifest, "create", "--validate=false", "--namespace="+ns,
			"--filename=-"); !says(err, words) {
			t.Errorf("creating %s does not say %q: %v", manifest, words, err)
		}
	}
}
