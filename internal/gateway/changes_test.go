// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/changes"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/client"
	"parley.dev/parley/internal/gateway/refusal"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/internal/kube/satoken"
	"parley.dev/parley/internal/workspace/agent/server"
	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/test/kit/check"
)

// workspace is one of a chat, whose agent runs here and trusts the cluster's issuer.
type workspace struct {
	*installation

	chat   *v1beta1.Chat
	object *v1beta1.Workspace
	pod    *corev1.Pod
	dir    string
	token  string // of a person who may see changes
	gets   int    // of pods
}

// newWorkspace makes one, whose agent admits the account as the gateway's.
func newWorkspace(t *testing.T, admitted string) *workspace {
	t.Helper()
	w := &workspace{chat: &v1beta1.Chat{}, object: &v1beta1.Workspace{}, dir: t.TempDir()}
	w.installation = install(t, func(g *Gateway) {
		g.agents.getPod = func(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
			w.gets++
			return core.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		}
	})
	w.create(&rbacv1.Role{ObjectMeta: w.meta("reviewer"), Rules: []rbacv1.PolicyRule{{APIGroups: []string{"parley.dev"},
		Resources: []string{"chats", "workspaces", "workspaces/changes"}, Verbs: []string{"get"}}}})
	cluster.Account(t, w.namespace, "reviewer")
	cluster.Bind(t, w.namespace, "reviewer", "Role", "reviewer")
	w.token = w.tokenOf("reviewer")
	w.chat.ObjectMeta = w.meta("top")
	w.create(w.chat)
	w.create(&v1beta1.Chat{ObjectMeta: w.meta("sub"), Spec: v1beta1.ChatSpec{
		ParentRef: &v1beta1.ChatReference{Name: "top"}}})
	w.makePod()
	w.object.ObjectMeta = w.meta("top")
	w.object.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(w.chat,
		v1beta1.GroupVersion.WithKind("Chat"))}
	w.object.Spec = v1beta1.WorkspaceSpec{ChatRef: v1beta1.ChatReference{Name: "top"},
		Source: v1beta1.WorkspaceSource{PodRef: &v1beta1.WorkspacePodReference{Name: "machine"}}}
	w.create(w.object)
	w.setPhase(v1beta1.WorkspacePhaseReady)
	w.serveAgent(admitted)
	return w
}

func (w *workspace) makePod() {
	w.t.Helper()
	meta := w.meta("machine")
	meta.Labels = map[string]string{"parley.dev/component": "workspace"}
	w.pod = &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{AutomountServiceAccountToken: new(false),
		ServiceAccountName: "stranger", Containers: []corev1.Container{{Name: "workspace", Image: "none"}}}}
	w.create(w.pod)
	w.pod.Status.PodIP, w.pod.Status.PodIPs = "127.0.0.1", []corev1.PodIP{{IP: "127.0.0.1"}}
	check.OK(w.t, cluster.Client.Status().Update(w.t.Context(), w.pod))
}

func (w *workspace) setPhase(phase v1beta1.WorkspacePhase) {
	w.t.Helper()
	w.object.Status.Phase = phase
	w.object.Status.Pod = &v1beta1.WorkspacePod{Name: "machine", UID: string(w.pod.UID), Address: "127.0.0.9"}
	w.object.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionReady, Status: metav1.ConditionFalse,
		Reason: "WorkspaceStopped", Message: "it is idle", LastTransitionTime: metav1.Now()}}
	check.OK(w.t, cluster.Client.Status().Update(w.t.Context(), w.object))
}

// serveAgent runs the agent, bound to the chat.
func (w *workspace) serveAgent(admitted string) {
	w.t.Helper()
	api, err := apiclient.New(cluster.Config, "parley-agent")
	check.OK(w.t, err)
	keys, err := api.IssuerKeys(w.t.Context())
	check.OK(w.t, err)
	file := filepath.Join(w.t.TempDir(), "keys")
	check.OK(w.t, os.WriteFile(file, keys, 0o600))
	state := w.t.TempDir()
	binding, err := json.Marshal(protocol.Binding{Chat: string(w.chat.UID)})
	check.OK(w.t, err)
	check.OK(w.t, os.WriteFile(filepath.Join(state, "binding.json"), binding, 0o600))
	log := slog.New(slog.DiscardHandler)
	verifier := &satoken.Verifier{Issuer: issuerOf(w.t, w.token), Now: time.Now,
		Audience: protocol.Audience(w.namespace, string(w.pod.UID)),
		Subjects: []string{"system:serviceaccount:" + w.namespace + ":" + admitted},
		Keys:     &server.KeyFile{Path: file, Now: time.Now, Log: log}}
	agent, err := server.New(server.Options{Directory: w.dir, State: state, Authorizer: verifier, Viewers: verifier,
		Log: log, Run: func(context.Context, *protocol.StartRequest, string, func(io.Reader) error) error {
			return &protocol.Error{Code: protocol.CannotStart, Message: "there is no git"}
		}})
	check.OK(w.t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check.OK(w.t, err)
	w.gateway.agents.port = listener.Addr().(*net.TCPAddr).Port
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	var running sync.WaitGroup
	running.Go(func() { _ = agent.Run(ctx, listener) })
	w.t.Cleanup(func() { cancel(); running.Wait() })
}

func (w *workspace) ask(chat, what, token string) (status int, header http.Header, body string) {
	w.t.Helper()
	response := w.get(w.t.Context(), "/v1beta1/namespaces/"+w.namespace+"/chats/"+chat+"/changes"+what, token, nil)
	defer response.Body.Close()
	raw, err := io.ReadAll(response.Body)
	check.OK(w.t, err)
	return response.StatusCode, response.Header, string(raw)
}

func (w *workspace) refuses(status int, reason, words, chat, token string) {
	w.t.Helper()
	got, _, text := w.ask(chat, "", token)
	var body refusal.Body
	if err := json.Unmarshal([]byte(text), &body); err != nil || got != status || body.Reason != reason ||
		!strings.Contains(body.Message, words) {
		w.t.Errorf("got %d %s", got, text)
	}
}

// Security (a client of the gateway): can only see what is changed in a workspace with the right to, and from no pod
// but the one that the manager names. Also TestGatewayMayOnlySeeChangesAndCopyFiles of internal/workspace/agent/server.
func TestChangesOfWorkspaceNeedTheRight(t *testing.T) {
	w := newWorkspace(t, "parley-gateway")
	check.OK(t, os.WriteFile(filepath.Join(w.dir, "a.txt"), []byte("gr\xfcn\n"), 0o600))
	for _, chat := range []string{"top", "sub"} {
		status, header, body := w.ask(chat, "", w.token)
		var got changes.Changes
		if err := json.Unmarshal([]byte(body), &got); err != nil || status != http.StatusOK || len(got.Files) != 1 ||
			!strings.Contains(got.Files[0].Diff, "+gr\ufffdn\n") || header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: got %d %s", chat, status, body)
		}
		status, header, body = w.ask(chat, ".patch", w.token)
		if status != http.StatusOK || header.Get("Content-Type") != "text/x-diff" || !strings.Contains(body, "+gr\xfcn\n") {
			t.Errorf("%s: got %d %v %s", chat, status, header, body)
		}
	}
	if status, _, body := w.ask("top", ".patch?"+url.Values{"repository": {"app"}}.Encode(), w.token); status != 404 {
		t.Errorf("got %d %s", status, body)
	}
	cluster.Account(t, w.namespace, "reader")
	w.create(&rbacv1.Role{ObjectMeta: w.meta("reader"), Rules: []rbacv1.PolicyRule{{APIGroups: []string{"parley.dev"},
		Resources: []string{"chats", "workspaces"}, Verbs: []string{"get"}}}})
	cluster.Bind(t, w.namespace, "reader", "Role", "reader")
	gets := w.gets
	w.refuses(http.StatusForbidden, refusal.Forbidden, "may not get workspaces/changes in namespace", "top",
		w.tokenOf("reader"))
	w.refuses(http.StatusUnauthorized, refusal.Unauthorized, "", "top", "")
	w.refuses(http.StatusForbidden, refusal.Forbidden, "", "top", w.tokenOf("stranger"))
	check.Equal(t, "looks at pods", gets, w.gets)
}

// Security (a client of the gateway): can only copy files from a workspace, and to it, with the right to each.
func TestCopiesOfFilesNeedTheRight(t *testing.T) {
	w := newWorkspace(t, "parley-gateway")
	as := func(account string, verbs ...string) client.Namespace {
		cluster.Account(t, w.namespace, account)
		w.create(&rbacv1.Role{ObjectMeta: w.meta(account), Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"parley.dev"}, Resources: []string{"chats", "workspaces"}, Verbs: []string{"get"}},
			{APIGroups: []string{"parley.dev"}, Resources: []string{"workspaces/files"}, Verbs: verbs}}})
		cluster.Bind(t, w.namespace, account, "Role", account)
		token := w.tokenOf(account)
		c := &client.Client{URL: w.url, HTTP: w.client, Token: func(context.Context) (string, error) {
			return token, nil
		}}
		return c.Namespace(w.namespace)
	}
	reader, writer := as("files-reader", "get"), as("files-writer", "update")
	content := bytes.Repeat([]byte("gr\xfcn\n"), 1<<20)
	check.OK(t, client.PutWorkspaceFile(t.Context(), writer, "sub", "app/a.bin", content, true))
	archive, err := client.OpenWorkspace(t.Context(), reader, "top", "app")
	check.OK(t, err)
	unpacked := t.TempDir()
	tarOf := exec.CommandContext(t.Context(), "tar", "-x", "-C", unpacked)
	tarOf.Stdin = archive
	check.OK(t, tarOf.Run())
	check.OK(t, archive.Close())
	got, err := os.ReadFile(filepath.Join(unpacked, "a.bin"))
	check.OK(t, err)
	info, err := os.Stat(filepath.Join(unpacked, "a.bin"))
	check.OK(t, err)
	if !bytes.Equal(got, content) || info.Mode()&0o100 == 0 {
		t.Errorf("got %d bytes, %v", len(got), info.Mode())
	}
	_, err = client.OpenWorkspace(t.Context(), writer, "top", "app")
	put := func(as client.Namespace, path string, size int) error {
		return client.PutWorkspaceFile(t.Context(), as, "top", path, make([]byte, size), false)
	}
	check.OK(t, put(writer, "empty", 0))
	for words, err := range map[string]error{"may not get workspaces/files": err,
		"parley-chat-admin":          put(reader, "b", 1),
		"is a directory":             put(writer, "app", 1),
		"leads out of the directory": put(writer, "../b", 1), "too large": put(writer, "b", 16<<20+1)} {
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("got %v, not %q", err, words)
		}
	}
}

func TestMissingWorkspaceIsExplained(t *testing.T) {
	w := newWorkspace(t, "parley-gateway")
	w.create(&v1beta1.Chat{ObjectMeta: w.meta("other")})
	w.refuses(http.StatusNotFound, refusal.NotFound, "chat other has no workspace", "other", w.token)
	w.setPhase(v1beta1.WorkspacePhaseStopped)
	w.refuses(http.StatusConflict, refusal.Conflict, "WorkspaceStopped: it is idle", "sub", w.token)
	w.setPhase(v1beta1.WorkspacePhaseReady)

	minted := w.minted.Load()
	for what, change := range map[string]func(*corev1.Pod){
		"not running":          func(p *corev1.Pod) { p.UID = "another" },
		"no address":           func(p *corev1.Pod) { p.Status.PodIP = "" },
		"the node's address":   func(p *corev1.Pod) { p.Spec.HostNetwork = true },
		"no pod of workspaces": func(p *corev1.Pod) { p.Labels = nil },
	} {
		pod := w.pod.DeepCopy()
		change(pod)
		if _, err := (&agents{getPod: func(context.Context, string, string) (*corev1.Pod, error) { return pod, nil }}).of(
			t.Context(), w.chat, w.object.Status.Pod); err == nil {
			t.Errorf("%s: it gets a token", what)
		}
	}
	check.OK(t, cluster.Client.Delete(t.Context(), w.pod))
	w.refuses(http.StatusServiceUnavailable, refusal.WorkspaceUnavailable, "workspace top does not answer", "top", w.token)
	check.Equal(t, "tokens", minted, w.minted.Load())
}

func TestAgentThatDoesNotAdmitGatewayIsExplained(t *testing.T) {
	w := newWorkspace(t, "stranger")
	w.refuses(http.StatusConflict, refusal.Conflict, "restart the workspace", "top", w.token)
}
