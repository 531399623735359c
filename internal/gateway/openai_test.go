// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/gateway/turn"
	"parley.dev/parley/test/kit/check"
)

// compatible is a client of OpenAI's protocols.
type compatible struct {
	in    *installation
	token string
}

// user makes an account that may chat, and its client.
func (in *installation) user(name string) *compatible {
	in.t.Helper()
	cluster.Account(in.t, in.namespace, name)
	in.create(&rbacv1.Role{ObjectMeta: in.meta(name), Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"parley.dev"}, Resources: []string{"chats", "chatmessages"},
			Verbs: []string{"get", "list", "watch", "create", "patch", "delete"}},
		{APIGroups: []string{"parley.dev"}, Resources: []string{"chatmodelconfigs", "chatclasses"}, Verbs: []string{"get", "list"}},
		{APIGroups: []string{"parley.dev"}, Resources: []string{"chats/stream"}, Verbs: []string{"get"}}}})
	cluster.Bind(in.t, in.namespace, name, "Role", name)
	return &compatible{in, in.tokenOf(name)}
}

// answered is an answer of which the body was read.
type answered struct {
	status int
	header http.Header
	body   string
}

// code is that of an error.
func (a answered) code(t *testing.T) string {
	t.Helper()
	var body struct {
		Error struct {
			Message, Type, Code string
		}
	}
	if err := json.Unmarshal([]byte(a.body), &body); err != nil || body.Error.Message == "" || body.Error.Type == "" {
		t.Errorf("this is no error of OpenAI: %d %s", a.status, a.body)
	}
	return body.Error.Code
}

func (c *compatible) ask(method, path, body string, headers ...string) *http.Response {
	c.in.t.Helper()
	r, err := http.NewRequestWithContext(c.in.t.Context(), method, c.in.url+path, strings.NewReader(body))
	check.OK(c.in.t, err)
	r.Header.Set("Authorization", "Bearer "+c.token)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := c.in.client.Do(r)
	check.OK(c.in.t, err)
	return response
}

func (c *compatible) does(method, path, body string, headers ...string) answered {
	c.in.t.Helper()
	response := c.ask(method, path, body, headers...)
	defer func() { _ = response.Body.Close() }()
	read, err := io.ReadAll(response.Body)
	check.OK(c.in.t, err)
	return answered{response.StatusCode, response.Header, string(read)}
}

func (c *compatible) base() string { return "/namespaces/" + c.in.namespace + "/v1" }

// takeUp puts the message that a client has created for a chat at the head.
func (c *conversation) takeUp(version int64) *v1beta1.ChatMessage {
	c.in.t.Helper()
	var found *v1beta1.ChatMessage
	waitUntil(c.in.t, "the client says something", func() bool {
		var all v1beta1.ChatMessageList
		if err := cluster.Client.List(c.in.t.Context(), &all, client.InNamespace(c.in.namespace)); err != nil {
			return false
		}
		for i := range all.Items {
			if m := &all.Items[i]; m.Spec.ChatRef.Name == c.chat.Name && m.Labels[turn.LabelRequest] != "" {
				found = m
			}
		}
		return found != nil
	})
	h := &c.chat.Status.History
	c.chat.Status.Turn = &v1beta1.TurnStatus{Message: found.Name, Parent: h.Head, Index: h.Length,
		HistoryVersion: version}
	h.Version, h.Head, h.Length = version, found.Name, h.Length+1
	return found
}

// answers says "Hello" to what a client is about to say, in two pieces. Call wait before the test ends.
func (c *conversation) answers() (wait func()) {
	var done sync.WaitGroup
	done.Go(func() {
		c.takeUp(1)
		c.attempt(1)
		c.commit()
		c.say("Hel", "lo")
		c.finish(v1beta1.RoleAssistant, "Hello")
		c.chat.Status.Turn.Result = v1beta1.TurnAnswered
		c.commit()
	})
	return done.Wait
}

const hello = `{"model": "", "stream": true, "messages": [{"role": "user", "content": "Hello"}]}`

func TestOpenAIClientStreamsAnswer(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	c, anna := in.converse("c"), in.user("anna")
	defer c.answers()()
	got := anna.does("POST", anna.base()+"/chat/completions", hello, "X-Parley-Chat", "c")
	if got.status != 200 || !strings.HasSuffix(got.body, "data: [DONE]\n\n") || got.header.Get("X-Parley-Chat") != "c" {
		t.Fatalf("%d %v %s", got.status, got.header, got.body)
	}
	id := "resp_" + got.header.Get("X-Parley-Message")
	found := anna.does("GET", "/v1/responses/"+id, "") // The namespace is that of anna's account.
	if found.status != 200 || !strings.Contains(found.body, `"text":"Hello"`) || !strings.Contains(found.body, `"completed"`) {
		t.Errorf("%d %s", found.status, found.body)
	}
}

func TestWholeAnswerIsThatOfTheLastAttempt(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	c, anna := in.converse("c"), in.user("anna")
	l := in.listen("c", "", 0)
	var done sync.WaitGroup
	defer done.Wait()
	done.Go(func() {
		c.takeUp(1)
		c.attempt(1)
		c.commit()
		c.say("Hel", "lo")
		l.waitID("1.1.2.1")
		waitUntil(t, "the answer is followed", func() bool {
			return in.gateway.chats.listeners.count(in.namespace+"/c") == 2
		})
		c.attempt(2)
		c.commit()
		c.say("Good ", "day")
		l.waitID("1.2.2.1")
		c.finish(v1beta1.RoleAssistant, "Good day")
		c.chat.Status.Turn.Result = v1beta1.TurnAnswered
		c.commit()
	})
	got := anna.does("POST", anna.base()+"/chat/completions", strings.Replace(hello, "true", "false", 1),
		"X-Parley-Chat", "c")
	if got.status != 200 || !strings.Contains(got.body, `"content":"Good day"`) {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestTurnThatWaitsForApprovalIsRetrieved(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	c, anna := in.converse("c"), in.user("anna")
	message := anna.sends("/responses", background)
	c.takeUp(1)
	c.attempt(1)
	c.finish(v1beta1.RoleAssistant, "I look.")
	c.chat.Status.Phase = v1beta1.ChatRequiresAction
	c.chat.Status.RequiresAction = &v1beta1.RequiresActionStatus{Deadline: metav1.NewTime(time.Now().Add(time.Hour)),
		ToolCalls: []v1beta1.PendingToolCall{{ID: "call_1", Name: "execute", Kind: v1beta1.RequiresApproval}}}
	c.commit()
	waitUntil(t, "the gateway knows it", func() bool {
		chat := in.gateway.chats.Get(in.namespace, "c")
		return chat != nil && chat.Status.RequiresAction != nil
	})
	got := anna.does("GET", anna.base()+"/responses/resp_"+message, "")
	if got.status != 200 || !strings.Contains(got.body, `"in_progress"`) || !strings.Contains(got.body, "I look.") {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestDeletedMessageEndsItsPendingAnswer(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	c, anna := in.converse("c"), in.user("anna")
	asked := make(chan *v1beta1.ChatMessage, 1)
	go func() {
		message := c.takeUp(1)
		c.attempt(1)
		c.commit()
		c.settle(message)
		c.say("Hel")
		asked <- message
	}()
	response := anna.ask("POST", anna.base()+"/chat/completions", hello, "X-Parley-Chat", "c")
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() && !strings.Contains(lines.Text(), "Hel") {
		continue
	}
	check.OK(t, cluster.Client.Delete(t.Context(), <-asked))
	c.chat.Status = v1beta1.ChatStatus{Phase: v1beta1.ChatWaiting, History: v1beta1.HistoryStatus{Version: 2}}
	c.commit()
	var rest strings.Builder
	for lines.Scan() {
		rest.WriteString(lines.Text())
	}
	check.Contains(t, rest.String(), "message_deleted")
}

// Security (a client of OpenAI's protocols): cannot receive anything after the right to read is withdrawn.
func TestWithdrawnPermissionEndsAnswer(t *testing.T) {
	t.Parallel()
	in := install(t, func(g *Gateway) { g.lease.every = 50 * time.Millisecond })
	c, anna := in.converse("c"), in.user("anna")
	var done sync.WaitGroup
	defer done.Wait()
	done.Go(func() {
		c.takeUp(1)
		c.commit()
		binding := &rbacv1.RoleBinding{ObjectMeta: in.meta("anna-anna")}
		if err := cluster.Client.Delete(t.Context(), binding); err != nil {
			t.Error(err)
		}
	})
	got := anna.does("POST", anna.base()+"/chat/completions", hello, "X-Parley-Chat", "c")
	check.Contains(t, got.body, "access_withdrawn")
}

// Security (a client of OpenAI's protocols): cannot do anything without a token of the API server, nor in another
// namespace, a chat or a response without the right to it, and cannot reach anything by a name that is a path.
//
// Security (a client of OpenAI's protocols): cannot leave a token in a log, or a message after a refusal.
func TestOpenAIEndpointsEnforcePermissions(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	in := install(t, func(g *Gateway) { g.config.Log = slog.New(slog.NewTextHandler(&log, nil)) })
	other := install(t, nil)
	in.converse("c")
	other.converse("theirs")
	anna := in.user("anna")
	stranger := &compatible{in, in.tokenOf("stranger")}
	listener := &compatible{in, in.tokenOf("viewer", "parley-gateway")}
	nobody := &compatible{in, "none"}
	elsewhere := "/namespaces/" + other.namespace + "/v1"
	for name, c := range map[string]struct {
		by           *compatible
		method, path string
		body         string
		headers      []string
		status       int
		code         string
	}{
		"no token":              {nobody, "GET", anna.base() + "/models", "", nil, 401, "invalid_api_key"},
		"a token for listening": {listener, "POST", anna.base() + "/chat/completions", hello, nil, 403, "forbidden"},
		"a stranger":            {stranger, "POST", anna.base() + "/chat/completions", hello, nil, 403, "forbidden"},
		"a stranger's chat":     {stranger, "POST", anna.base() + "/responses", `{"input": "x", "conversation": "c"}`, nil, 403, "forbidden"},
		"a stranger's models":   {stranger, "GET", anna.base() + "/models", "", nil, 403, "forbidden"},
		"another namespace":     {anna, "POST", elsewhere + "/chat/completions", hello, nil, 403, "forbidden"},
		"another namespace's chat": {anna, "POST", elsewhere + "/chat/completions", hello, []string{"X-Parley-Chat", "theirs"},
			403, "forbidden"},
		"another namespace by the header": {anna, "POST", "/v1/chat/completions", hello,
			[]string{"X-Parley-Namespace", other.namespace}, 403, "forbidden"},
		"another namespace's response": {anna, "GET", elsewhere + "/responses/resp_q", "", nil, 403, "forbidden"},
		"a namespace that is a path": {anna, "GET", "/v1/models", "", []string{"X-Parley-Namespace", "../../api"}, 400,
			"namespace_missing"},
		"a response that is a path": {anna, "GET", anna.base() + "/responses/resp_..%2F..%2Fsecrets", "", nil, 404,
			"response_not_found"},
		"a response that is none": {anna, "GET", anna.base() + "/responses/resp_none", "", nil, 404, "not_found"},
		"a chat that is a path":   {anna, "POST", anna.base() + "/chat/completions", hello, []string{"X-Parley-Chat", "a/../b"}, 400, "invalid_value"},
		"a model that is a path":  {anna, "POST", anna.base() + "/responses", `{"input": "x", "model": "../secrets/x"}`, nil, 404, "model_not_found"},
		"a model that is none":    {anna, "POST", anna.base() + "/responses", `{"input": "x", "model": "gpt-5"}`, nil, 404, "model_not_found"},
		"a body that is too large": {anna, "POST", anna.base() + "/responses", strings.Repeat(" ", 17<<20), nil, 413,
			"request_entity_too_large"},
		"a body that is none": {anna, "POST", anna.base() + "/responses", `{"input":`, nil, 400, ""},
		"results of no chat of ours": {anna, "POST", anna.base() + "/responses", `{"input": [{"type": "function_call_output",
			"call_id": "call_1_gone", "output": "x"}]}`, nil, 404, "not_found"},
		"results that no call waits for": {anna, "POST", anna.base() + "/responses", `{"input": [{"type": "function_call_output",
			"call_id": "call_1_c", "output": "x"}]}`, nil, 409, "conflict"},
		"nothing that is new": {anna, "POST", anna.base() + "/chat/completions", `{"messages": []}`, nil, 400, "bad_request"},
		"what is not there":   {anna, "GET", anna.base() + "/embeddings", "", nil, 404, "unknown_url"},
		"a key that is none":  {nobody, "GET", anna.base() + "/models", "", []string{"Authorization", "", "X-Api-Key", "none"}, 401, "invalid_api_key"},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.by.does(c.method, c.path, c.body, c.headers...)
			if code := got.code(t); got.status != c.status || code != c.code {
				t.Errorf("%d %s: %s", got.status, code, got.body)
			}
		})
	}
	var said v1beta1.ChatMessageList
	check.OK(t, cluster.Client.List(t.Context(), &said))
	for i := range said.Items {
		if ns := said.Items[i].Namespace; ns == in.namespace || ns == other.namespace {
			t.Errorf("somebody has said %s", said.Items[i].Name)
		}
	}
	for _, c := range []*compatible{anna, stranger, listener} {
		check.Lacks(t, log.String(), c.token)
	}
}

// Security (a client of OpenAI's protocols): cannot get the answer of someone else by a key that someone else has used.
func TestAKeyOfSomebodyElseIsAnotherOne(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	anna, bob := in.user("anna"), in.user("bob")
	in.create(&v1beta1.ChatModelConfig{ObjectMeta: metav1.ObjectMeta{Namespace: in.namespace, Name: "m"},
		Spec: v1beta1.ChatModelConfigSpec{Provider: v1beta1.ProviderOpenAICompatible, Model: "m",
			BaseURL: "http://model.invalid/v1", Default: true}})
	const ask = `{"input": "Hi.", "background": true, "model": "m"}`
	first := anna.does("POST", anna.base()+"/responses", ask, "Idempotency-Key", "k")
	again := anna.does("POST", anna.base()+"/responses", ask, "Idempotency-Key", "k")
	others := bob.does("POST", bob.base()+"/responses", ask, "Idempotency-Key", "k")
	if first.status != 200 || first.body != again.body || others.status != 200 || first.body == others.body {
		t.Errorf("anna got %s and %s, bob %s", first.body, again.body, others.body)
	}
	reused := anna.does("POST", anna.base()+"/responses", `{"input": "Bye.", "background": true}`, "Idempotency-Key", "k")
	if reused.status != 409 {
		t.Errorf("a key that is used again for something else: %d %s", reused.status, reused.body)
	}
}

func TestNewChatHasWhatItsClassAllows(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	anna := in.user("anna")
	in.create(&v1beta1.ChatClass{ObjectMeta: in.meta("coder"), Spec: v1beta1.ChatClassSpec{
		Restrictions: &v1beta1.ChatRestrictions{
			Fields: []v1beta1.ChatField{v1beta1.FieldRetention},
			Limits: &v1beta1.ChatLimits{ActionDeadlineSeconds: new(int32(60))},
		}}})
	got := anna.does("POST", anna.base()+"/responses", `{"input": "Hi.", "background": true, "model": "class/coder",
		"tools": [{"type": "function", "name": "count", "parameters": {"type": "object"}}]}`, "Thread-Id", "t")
	if got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	chat := &v1beta1.Chat{ObjectMeta: in.meta(got.header.Get("X-Parley-Chat"))}
	check.OK(t, cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(chat), chat))
	if chat.Spec.Retention != nil || *chat.Spec.Limits.ActionDeadlineSeconds != 60 {
		t.Errorf("retention %+v, limits %+v", chat.Spec.Retention, chat.Spec.Limits)
	}
}
