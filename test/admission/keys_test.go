// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
)

// modelWithKey is a model configuration that sends a Secret's content to a server of the writer's choice.
func modelWithKey(secret string) *v1beta1.ChatModelConfig {
	return chattest.In(ns, chattest.Config(unique("model"), func(s *v1beta1.ChatModelConfigSpec) {
		s.APIKey = &v1beta1.APIKeySource{SecretKeyRef: v1beta1.SecretKeyReference{Name: secret, Key: "key"}}
	}))
}

func inConfigMap(name, key string) v1beta1.ConfigMapKeyReference {
	return v1beta1.ConfigMapKeyReference{Name: name, Key: key}
}

// instructed is a chat whose instructions are in the ConfigMaps.
func instructed(configMaps ...string) *v1beta1.Chat {
	chat := newChat(unique("chat"))
	for _, name := range configMaps {
		chat.Spec.InstructionsFrom = append(chat.Spec.InstructionsFrom,
			v1beta1.InstructionsSource{ConfigMapKeyRef: inConfigMap(name, "a")})
	}
	return chat
}

// skilled is a chat whose skills are the ConfigMaps.
func skilled(configMaps ...string) *v1beta1.Chat {
	chat := newChat(unique("chat"))
	for _, name := range configMaps {
		chat.Spec.SkillsFrom = append(chat.Spec.SkillsFrom,
			v1beta1.SkillSource{ConfigMapRef: v1beta1.ConfigMapReference{Name: name}})
	}
	return chat
}

// forkOf is a chat that continues another one.
func forkOf(source string) *v1beta1.Chat {
	chat := newChat(unique("chat"))
	chat.Spec.Fork = &v1beta1.ForkSource{Chat: source, Message: "x"}
	return chat
}

func TestForksAreForReadersOfTheirSource(t *testing.T) {
	t.Parallel()
	reader := actor{name: "reader"}
	grant(t, reader, rbacv1.PolicyRule{APIGroups: []string{v1beta1.GroupVersion.Group},
		Resources: []string{"chatmessages"}, Verbs: []string{"list"}})
	grant(t, reader, rbacv1.PolicyRule{APIGroups: []string{v1beta1.GroupVersion.Group},
		Resources: []string{"chats"}, Verbs: []string{"create", "get"}})
	awaitAllowed(t.Context(), t, reader, func(ctx context.Context, c client.Client) error {
		return errors.Join(c.List(ctx, &v1beta1.ChatMessageList{}, client.InNamespace(ns)),
			c.Create(ctx, newChat(unique("chat"))))
	})
	try(t, []write{
		{statusWriter, "continues a chat that it may not read", creates(forkOf("a")), "may not read chat a"},
		{reader, "continues a chat without the right to write to it", creates(forkOf("a")), "may not create chatmessages"},
		{chatter, "continues a chat", creates(forkOf("a")), ""},
	})
	withFiles, narrow := forkOf("a"), actor{name: "writer"}
	withFiles.Spec.Fork.Workspace = v1beta1.ForkWorkspaceCopy
	grant(t, narrow, rbacv1.PolicyRule{APIGroups: []string{v1beta1.GroupVersion.Group},
		Resources: []string{"chats", "chatmessages"}, Verbs: []string{"create", "get", "list"}})
	awaitAllowed(t.Context(), t, narrow, func(ctx context.Context, c client.Client) error {
		return c.Create(ctx, forkOf("a"))
	})
	both, changed := forkOf("a"), forkOf("a")
	both.Spec.ParentRef = &v1beta1.ChatReference{Name: "b"}
	mustCreate(t, chatter, changed)
	copies := withFiles.DeepCopy()
	copies.Name = unique("chat")
	mustCreate(t, chatter, copies)
	try(t, []write{
		{chatter, "names another workspace",
			updates(copies, func(c *v1beta1.Chat) { c.Spec.Fork.Chat, c.Spec.Fork.Workspace = "b", "" }), "fork cannot change"},
		{chatter, "cancels the copy of files", updates(copies, func(c *v1beta1.Chat) { c.Spec.Fork.Workspace = "" }), ""},
		{chatter, "starts a sub-chat as a fork", creates(both), "a sub-chat cannot be a fork"},
		{chatter, "takes the source from a fork",
			updates(changed, func(c *v1beta1.Chat) { c.Spec.Fork = nil }), "fork can only be given"},
		{chatter, "changes the source of a fork",
			updates(changed, func(c *v1beta1.Chat) { c.Spec.Fork.Message = "y" }), "fork cannot change"},
		{narrow, "copies files that it may not see", creates(withFiles), "may not see the files"},
		{chatter, "copies files", creates(withFiles), ""},
		{chatter, "has files copied later",
			updates(changed, func(c *v1beta1.Chat) { c.Spec.Fork.Workspace = v1beta1.ForkWorkspaceCopy }), "fork cannot change"},
		{chatter, "says None where nothing is said",
			updates(changed, func(c *v1beta1.Chat) { c.Spec.Fork.Workspace = v1beta1.ForkWorkspaceNone }), ""},
	})
}

// withFiles is a message with the content of the ConfigMaps.
func withFiles(configMaps ...string) *v1beta1.ChatMessage {
	m := inParts("any", "see")
	for _, name := range configMaps {
		m.Spec.Parts = append(m.Spec.Parts, v1beta1.MessagePart{Type: v1beta1.PartFile, File: &v1beta1.MessageFile{
			Name: "a.txt", MediaType: "text/plain", ConfigMapKeyRef: new(inConfigMap(name, "a")),
		}})
	}
	return m
}

// inParts is a person's message with these texts.
func inParts(chat string, texts ...string) *v1beta1.ChatMessage {
	m := say(chat)
	m.Spec.Content, m.Spec.Role = "", v1beta1.RoleUser
	for _, text := range texts {
		m.Spec.Parts = append(m.Spec.Parts, v1beta1.MessagePart{Type: v1beta1.PartText, Text: new(text)})
	}
	return m
}

// mayGet lets the person get the named objects of the namespace, or all of them.
func mayGet(t *testing.T, who actor, resource string, names ...string) {
	t.Helper()
	grant(t, who, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{resource}, ResourceNames: names,
		Verbs: []string{"get"}})
}

// grant gives the person a right in the namespace until the test ends.
func grant(t *testing.T, who actor, rule rbacv1.PolicyRule) {
	t.Helper()
	role := &rbacv1.Role{ObjectMeta: meta("grant"), Rules: []rbacv1.PolicyRule{rule}}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name, Namespace: ns}, Subjects: person(who.name),
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
	}
	mustCreate(t, administrator, role)
	mustCreate(t, administrator, binding)
	t.Cleanup(func() { _ = cluster.Client.Delete(context.WithoutCancel(t.Context()), binding) })
}

func TestKeyReferenceRequiresReadAccess(t *testing.T) {
	t.Parallel()
	mayGet(t, owner, "secrets", "openai")
	awaitAllowed(t.Context(), t, owner, creates(modelWithKey("openai")))
	allowed, stolen := modelWithKey("openai"), modelWithKey("payroll")
	mustCreate(t, owner, allowed)
	mustCreate(t, administrator, stolen)
	const refusal = "owner may not get Secret payroll, which apiKey names"
	elsewhere := `{"spec":{"baseURL":"http://attacker.example/v1"}}`
	try(t, []write{
		{owner, "names a Secret that it may not read", creates(modelWithKey("payroll")), refusal},
		{owner, "leads a key elsewhere that it may not read", patches(stolen, elsewhere), refusal},
		{owner, "names another Secret", patches(allowed, `{"spec":{"apiKey":{"secretKeyRef":{"name":"payroll"}}}}`), refusal},
		{owner, "names a path",
			patches(allowed,
				`{"spec":{"apiKey":{"secretKeyRef":{"name":"../../secrets/kubernetes.io/serviceaccount","key":"token"}}}}`),
			"the name of a Secret has lower-case letters"},
		{owner, "names a path as the key", patches(allowed, `{"spec":{"apiKey":{"secretKeyRef":{"key":".."}}}}`),
			"a key is neither . nor begins with .."},
		{owner, "leads a key elsewhere that it may read", patches(allowed, elsewhere), ""},
		{owner, "labels a configuration with another's key", patches(stolen, `{"metadata":{"labels":{"a":"b"}}}`), ""},
		{owner, "takes another's key away", patches(stolen, `{"spec":{"apiKey":null}}`), ""},
		{owner, "needs no key", creates(chattest.In(ns, chattest.Config(unique("model")))), ""},
		{manager, "says of a configuration that it can be used",
			patchesStatus(allowed, `{"status":{"observedGeneration":1}}`), ""},
	})
}

func TestConfigMapReferenceRequiresReadAccess(t *testing.T) {
	t.Parallel()
	handbook := "handbook"
	mayGet(t, chatter, "configmaps", handbook)
	awaitAllowed(t.Context(), t, chatter, creates(instructed(handbook)))
	foreign, foreignMessage, own := instructed("internal"), withFiles("internal"), instructed(handbook)
	mustCreate(t, chatter, own)
	mustCreate(t, administrator, foreign)
	mustCreate(t, administrator, foreignMessage)
	const refusal = "chatter may not get every ConfigMap that is named here"
	many := make([]string, 16)
	for i := range many {
		many[i] = handbook
	}
	try(t, []write{
		{chatter, "instructs a chat from a ConfigMap that it may read", creates(instructed(many...)), ""},
		{chatter, "instructs a chat from one that it may not read", creates(instructed("internal")), refusal},
		{chatter, "hides one that it may not read behind 15 others", creates(instructed(append(many[:15:15], "internal")...)),
			refusal},
		{chatter, "adds one that it may not read",
			patches(own, `{"spec":{"instructionsFrom":[{"configMapKeyRef":{"name":"internal","key":"a"}}]}}`), refusal},
		{chatter, "reads another key of one that somebody else named",
			patches(foreign, `{"spec":{"instructionsFrom":[{"configMapKeyRef":{"name":"internal","key":"b"}}]}}`), refusal},
		{chatter, "changes a chat that somebody else instructed", patches(foreign, `{"spec":{"title":"Other"}}`), ""},
		{chatter, "sends a file that it may read", creates(withFiles(many...)), ""},
		{chatter, "sends a file that it may not read", creates(withFiles("internal")), refusal},
		{chatter, "hides a file that it may not read behind 15 others",
			creates(withFiles(append(many[:15:15], "internal")...)), refusal},
		{chatter, "sends 17 files", creates(withFiles(append(many, handbook)...)), "at most 16 keys of ConfigMaps"},
		{administrator, "sends 40 files", creates(withFiles(append(append(many, many...), many[:8]...)...)), ""},
		{chatter, "lets another's message with a file cut in", patches(foreignMessage, `{"spec":{"whenBusy":"Interrupt"}}`),
			""},
		{chatter, "says something without a file", creates(inParts("any", "see")), ""},
	})
}

// Security (a hostile skill or AGENTS.md): cannot be a ConfigMap that whoever names it may not get, nor have more of
// its keys read than were checked. Also TestAFileOfASkillStaysWithinIt of test/admission.
func TestSkillReferenceRequiresReadAccess(t *testing.T) {
	t.Parallel()
	const library = "library"
	mayGet(t, chatter, "configmaps", library)
	awaitAllowed(t.Context(), t, chatter, creates(skilled(library)))
	foreign, own := skilled("internal"), skilled(library)
	mustCreate(t, administrator, foreign)
	mustCreate(t, chatter, own)
	const refusal = "chatter may not get every ConfigMap that is named here, and so cannot show it to a model"
	many := slices.Repeat([]string{library}, 16)
	try(t, []write{
		{chatter, "names skills that it may read", creates(skilled(many...)), ""},
		{chatter, "names one that it may not read", creates(skilled("internal")), refusal},
		{chatter, "hides one that it may not read behind 15 others", creates(skilled(append(many[:15:15], "internal")...)),
			refusal},
		{chatter, "names 17 skills", creates(skilled(append(many, library)...)), "at most 16 skills can be named at a time"},
		{administrator, "names 32 skills", creates(skilled(append(many, many...)...)), ""},
		{chatter, "adds one that it may not read",
			patches(own, `{"spec":{"skillsFrom":[{"configMapRef":{"name":"library"}},{"configMapRef":{"name":"internal"}}]}}`),
			refusal},
		{chatter, "has other keys read of one that somebody else named", patches(foreign,
			`{"spec":{"skillsFrom":[{"configMapRef":{"name":"internal"},"items":[{"key":"a","path":"a"}]}]}}`), refusal},
		{chatter, "changes a chat whose skills somebody else named", patches(foreign, `{"spec":{"title":"Other"}}`), ""},
		{chatter, "takes a skill away that somebody else named", patches(foreign, `{"spec":{"skillsFrom":[]}}`), ""},
	})
}

func TestAFileOfASkillStaysWithinIt(t *testing.T) {
	t.Parallel()
	at := func(items ...v1beta1.SkillItem) *v1beta1.Chat {
		chat := skilled("any")
		chat.Spec.SkillsFrom[0].Items = items
		return chat
	}
	const refusal = "path must be relative, such as scripts/fill.py"
	writes := []write{
		{administrator, "puts keys into folders", creates(at(v1beta1.SkillItem{Key: "fill.py", Path: "scripts/fill.py"},
			v1beta1.SkillItem{Key: "pdf.SKILL.md", Path: "SKILL.md"}, v1beta1.SkillItem{Key: "a", Path: "a..b/c."})), ""},
		{administrator, "puts two keys at one path", creates(at(v1beta1.SkillItem{Key: "a", Path: "x"},
			v1beta1.SkillItem{Key: "b", Path: "x"})), "Duplicate value"},
		{administrator, "names a key that is a path", creates(at(v1beta1.SkillItem{Key: "..", Path: "x"})),
			"a key is neither . nor begins with .."},
		{administrator, "names a ConfigMap that is a path", creates(skilled("../secrets")),
			"the name of a ConfigMap has lower-case letters"},
		{administrator, "names 33 skills", creates(skilled(slices.Repeat([]string{"any"}, 33)...)), "must have at most 32 items"},
	}
	for _, path := range []string{"/a", "..", "../a", "a/../b", "a/..", ".", "./a", "a/./b", ".git/config", "a/.env", "a//b", "a/",
		"a\\b", "a b", "a\nb"} {
		writes = append(writes, write{administrator, fmt.Sprintf("puts a file at %q", path),
			creates(at(v1beta1.SkillItem{Key: "a", Path: path})), refusal})
	}
	try(t, writes)
}

func TestWhatPeopleSayIsNotBlank(t *testing.T) {
	t.Parallel()
	content := func(text string) *v1beta1.ChatMessage {
		m := say("any")
		m.Spec.Content = text
		return m
	}
	prompted := func(text string) *v1beta1.Chat {
		chat := newChat(unique("chat"))
		chat.Spec.Prompt = text
		return chat
	}
	picture := inParts("any", " ")
	picture.Spec.Parts = append(picture.Spec.Parts,
		v1beta1.MessagePart{Type: v1beta1.PartFile, File: &v1beta1.MessageFile{
			Name: "a.png", MediaType: "image/png", Data: "iVBORw0KGgo=",
		}})
	var writes []write
	for _, blank := range []string{" ", "\n\t ", "\u00a0\u3000", "\u200b"} {
		writes = append(writes,
			write{chatter, fmt.Sprintf("says %q", blank), creates(content(blank)), "content is blank: say something"},
			write{chatter, fmt.Sprintf("says %q in parts", blank), creates(inParts("any", blank, blank)),
				"all parts are blank: say something, or give a file"},
			write{chatter, fmt.Sprintf("begins a chat with %q", blank), creates(prompted(blank)),
				"prompt is blank: say something, or leave it out"},
		)
	}
	try(t, append(writes,
		write{chatter, "says a sign", creates(content("\u2713")), ""},
		write{chatter, "says something after a blank part", creates(inParts("any", " ", "hello")), ""},
		write{chatter, "gives a file without a word", creates(picture), ""},
	))
}

func TestNamesOfGeneratedMessagesAreNobodysElse(t *testing.T) {
	t.Parallel()
	named := func(name string) *v1beta1.ChatMessage {
		m := say("no-such-chat")
		m.Name = name
		return m
	}
	const generated, prompts = "belong to generated messages: choose another one",
		"belong to the messages that stand for spec.prompt of a Chat"
	var writes []write
	for _, who := range []actor{chatter, owner, boss, root, administrator, impostor} {
		writes = append(writes,
			write{who, "takes the name of a reply to come", creates(named("squat-1-1")), generated},
			write{who, "takes the name of a summary to come", creates(named("squat-1-summary")), generated},
			write{who, "takes the name of a prompt to come", creates(named("squat-prompt")), prompts},
		)
	}
	generates := say("squat-2")
	generates.Name, generates.GenerateName = "", "squat-2-message-"
	try(t, append(writes,
		write{manager, "makes the prompt a message", creates(named("squat-prompt")), ""},
		write{manager, "takes the name of a reply to come", creates(named("squat-1-1")), generated},
		write{chatter, "takes a name with a number", creates(named(meta("turn-3").Name + "-a")), ""},
		write{chatter, "lets the API server choose the name", creates(generates), ""},
	))
}

// tokenSecret is a Secret that the control plane writes a token of the account into.
func tokenSecret(account string) *corev1.Secret {
	secret := &corev1.Secret{ObjectMeta: meta("token"), Type: corev1.SecretTypeServiceAccountToken}
	secret.Annotations = map[string]string{corev1.ServiceAccountNameKey: account}
	return secret
}

// tokened is a chat of a server that gets the key of these Secrets.
func tokened(secrets ...string) *v1beta1.Chat {
	chat := newChat(unique("chat"))
	for i, name := range secrets {
		if i%4 == 0 {
			chat.Spec.MCPServers = append(chat.Spec.MCPServers,
				v1beta1.MCPServer{Name: fmt.Sprint("s", i), URL: "https://mcp.example.com"})
		}
		last := &chat.Spec.MCPServers[len(chat.Spec.MCPServers)-1]
		last.HeadersFrom = append(last.HeadersFrom, v1beta1.MCPHeaderSource{Name: fmt.Sprint("X-", i%4),
			SecretKeyRef: v1beta1.SecretKeyReference{Name: name, Key: "token"}})
	}
	return chat
}

// Security (a hostile MCP server): cannot get a Secret that whoever wrote its entry may not get.
func TestSecretSentToServerRequiresReadAccess(t *testing.T) {
	t.Parallel()
	const own = "tracker"
	mayGet(t, chatter, "secrets", own)
	awaitAllowed(t.Context(), t, chatter, creates(tokened(own)))
	foreign := tokened("billing")
	mustCreate(t, administrator, foreign)
	const refusal = "chatter may not get every Secret that mcpServers names here"
	many := slices.Repeat([]string{own}, 16)
	servers := func(url string) string {
		return `{"spec":{"mcpServers":[{"name":"s0","url":"` + url + `","headersFrom":[{"name":"X-0",` +
			`"secretKeyRef":{"name":"billing","key":"token"}}]}]}}`
	}
	try(t, []write{
		{chatter, "names a Secret that they may read", creates(tokened(own)), ""},
		{chatter, "names 16 of them", creates(tokened(many...)), ""},
		{chatter, "names one that they may not read", creates(tokened("billing")), refusal},
		{chatter, "hides one behind 15 others", creates(tokened(append(many[:15:15], "billing")...)), refusal},
		{chatter, "names 17", creates(tokened(append(many, own)...)), "at most 16 keys of Secrets can be named at a time"},
		{administrator, "names 64", creates(tokened(slices.Repeat([]string{"any"}, 64)...)), ""},
		{chatter, "leads the token of somebody else's entry elsewhere", patches(foreign, servers("https://evil.example.com")),
			refusal},
		{chatter, "changes a chat whose entry somebody else wrote", patches(foreign, `{"spec":{"title":"Other"}}`), ""},
		{chatter, "takes the entry away", patches(foreign, `{"spec":{"mcpServers":[]}}`), ""},
	})
}

// sending is a class whose chats have a server that gets the key of these Secrets.
func sending(secrets ...string) *v1beta1.ChatClass {
	return newClass(func(s *v1beta1.ChatClassSpec) {
		s.Defaults.MCPServers = tokened(secrets...).Spec.MCPServers
	})
}

func TestClassSecretsRequireReadAccessOfAuthor(t *testing.T) {
	t.Parallel()
	try(t, []write{
		{curator, "names no Secret", creates(sending()), ""},
		{curator, "sends one to a server", creates(sending("tracker")), "may not get the Secrets of namespace"},
		{administrator, "sends one to a server", creates(sending("tracker")), ""},
	})
}
