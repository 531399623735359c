// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workspaces finds the workspaces of chats, and makes clients of their agents. A token is valid for the agent
// in one pod only.
package workspaces

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/tree"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/internal/kube/tokencache"
	"parley.dev/parley/internal/netguard/retry"
	"parley.dev/parley/internal/tools/templates"
	"parley.dev/parley/internal/workspace/client"
	"parley.dev/parley/internal/workspace/protocol"
)

// Options of Workspaces. All are required.
type Options struct {
	Namespace string
	// Chat and Workspace read from the API server.
	Chat      func(ctx context.Context, name string) (*v1beta1.Chat, error)
	Workspace func(ctx context.Context, name string) (*v1beta1.Workspace, error)
	// Mint requests a token of the generation pod's account.
	Mint tokencache.Mint
	Now  func() time.Time
}

// Workspaces finds the workspaces of a namespace. It is safe for concurrent use.
type Workspaces struct {
	options   Options
	tokens    *tokencache.Cache
	transport http.RoundTripper
	bound     *lru.Cache // of boundPod
}

// boundPod is a pod whose agent knows the chat of its workspace.
type boundPod struct{ pod, chat string }

// answerPatience is how long a call waits for an answer, in addition to what it asks for. An agent shares the
// processors of its node with what models run there, and a call without an answer leaves the model to find out what
// was done.
const answerPatience = time.Minute

// maxBound limits the remembered bindings. To bind again is harmless.
const maxBound = 1000

// New returns workspaces.
func New(o Options) *Workspaces {
	return &Workspaces{options: o, tokens: tokencache.New(o.Mint, o.Now), transport: client.NewTransport(),
		bound: lru.New(maxBound)}
}

// Has reports whether the chat's family had a workspace when the attempt began.
func Has(chat *v1beta1.Chat) bool { return chat.Status.Internal.Attempt.HasWorkspace }

// Of is a client of the agent in the workspace of the chat's family. The error is for the model.
func (w *Workspaces) Of(ctx context.Context, chat *v1beta1.Chat) (*client.Client, error) {
	root, err := w.Owner(ctx, chat)
	if err != nil {
		return nil, err
	}
	switch { // The settings in force are known only of the attempt's own chat.
	case !Has(chat) && chat == root && root.Spec.Workspace == nil:
		return nil, fmt.Errorf("chat %s has no workspace: its spec.workspace names none", root.Name)
	case !Has(chat) && chat == root:
		return nil, fmt.Errorf("chat %s has no workspace yet: choose a template for it with create_workspace", root.Name)
	case !Has(chat):
		return nil, fmt.Errorf("chat %s, which this one would share a workspace with, has none", root.Name)
	}
	return w.open(ctx, root)
}

// open is a client of the agent in the workspace's pod, or in the pod that has replaced it meanwhile.
func (w *Workspaces) open(ctx context.Context, root *v1beta1.Chat) (*client.Client, error) {
	for {
		pod, err := w.pod(ctx, root)
		if err != nil {
			return nil, err
		}
		c := w.client(root, pod)
		if err = w.bind(ctx, c, boundPod{pod.UID, string(root.UID)}); !errors.Is(err, client.ErrGone) {
			return c, err
		}
	}
}

// client is one of the agent in the pod of the root's workspace.
func (w *Workspaces) client(root *v1beta1.Chat, pod *v1beta1.WorkspacePod) *client.Client {
	audience := protocol.Audience(w.options.Namespace, pod.UID)
	return client.New(client.Options{Address: pod.Address, Chat: string(root.UID), Pod: pod.UID, Transport: w.transport,
		Timeout: answerPatience,
		Token:   func(ctx context.Context) (string, error) { return w.token(ctx, audience) },
		Gone:    func(ctx context.Context) bool { return w.gone(ctx, root, pod.UID) }})
}

// Owner is the root of the chat's family, which owns the workspace.
func (w *Workspaces) Owner(ctx context.Context, chat *v1beta1.Chat) (*v1beta1.Chat, error) {
	return tree.Top(chat, func(name string) (*v1beta1.Chat, error) { return read(ctx, w.options.Chat, name) })
}

const (
	// startPatience is how long a call waits for a workspace from when that stopped being ready: a minute, as the manager
	// waits before it has a model asked without the tools of commands. A pod that was removed is replaced sooner.
	startPatience = time.Minute
	// startPoll is how often the call looks.
	startPoll = 250 * time.Millisecond
)

// pod is the ready pod of the root's workspace. The operator has checked it before the calls, so a missing one is for
// people to fix, or was just lost. It waits for a pod that is about to be ready.
func (w *Workspaces) pod(ctx context.Context, root *v1beta1.Chat) (pod *v1beta1.WorkspacePod, err error) {
	for end := w.options.Now().Add(startPatience); ; {
		pod, passes, err := w.look(ctx, root)
		if !passes || w.options.Now().After(end) {
			return pod, err
		}
		if retry.Sleep(ctx, startPoll) != nil {
			return nil, err
		}
	}
}

// look returns the pod of the root's workspace, or why there is none. passes is true if waiting can help.
func (w *Workspaces) look(ctx context.Context, root *v1beta1.Chat) (_ *v1beta1.WorkspacePod, passes bool, _ error) {
	workspace, err := read(ctx, w.options.Workspace, root.Name)
	if apierrors.IsNotFound(err) {
		return nil, false, fmt.Errorf("there is none yet")
	}
	if err != nil {
		return nil, false, fmt.Errorf("reading workspace %s: %w", root.Name, err)
	}
	if !belongsTo(workspace, root.UID) {
		return nil, false, fmt.Errorf("workspace %s belongs to another chat", root.Name)
	}
	ready := meta.FindStatusCondition(workspace.Status.Conditions, v1beta1.ConditionReady)
	pod := workspace.Status.Pod
	switch {
	case ready == nil:
		return nil, false, fmt.Errorf("it is about to start; try again in a moment")
	case workspace.Status.Phase != v1beta1.WorkspacePhaseReady || pod == nil || pod.Address == "":
		passes = ready.Status == metav1.ConditionUnknown &&
			w.options.Now().Sub(ready.LastTransitionTime.Time) < startPatience
		return nil, passes, fmt.Errorf("%s: %s", ready.Reason, ready.Message)
	}
	return pod, false, nil
}

// gone reports whether the root's workspace has lost the pod, or removes it. A pod that does not answer may come back:
// its container is restarted. If the API server does not answer, the pod is not gone.
func (w *Workspaces) gone(ctx context.Context, root *v1beta1.Chat, pod string) bool {
	workspace, err := w.options.Workspace(ctx, root.Name)
	if err != nil {
		return apierrors.IsNotFound(err)
	}
	st := &workspace.Status
	return !belongsTo(workspace, root.UID) || st.Pod == nil || st.Pod.UID != pod ||
		st.Phase == v1beta1.WorkspacePhaseStopping || st.Phase == v1beta1.WorkspacePhaseStopped
}

func belongsTo(w *v1beta1.Workspace, chat types.UID) bool {
	owner := metav1.GetControllerOf(w)
	return owner != nil && owner.UID == chat
}

// bind binds the agent to the chat, once for each pod.
func (w *Workspaces) bind(ctx context.Context, c *client.Client, pod boundPod) error {
	if _, isBound := w.bound.Get(pod); isBound {
		return nil
	}
	err := c.Bind(ctx)
	if err == nil {
		w.bound.Add(pod, nil)
	}
	return err
}

// patience is how long requests to the API server are retried. A restart takes less, and a request to a workspace,
// which needs a token, lasts 30 s.
const patience = 20 * time.Second

// read reads an object. NotFound is final.
func read[T any](ctx context.Context, get func(context.Context, string) (T, error), name string) (T, error) {
	return patiently(ctx, func(ctx context.Context) (T, error) { return get(ctx, name) }, apierrors.IsNotFound)
}

// token is one for the audience. NotFound means that this pod has been removed: then its chats move to others, which
// ends ctx.
func (w *Workspaces) token(ctx context.Context, audience string) (string, error) {
	return patiently(ctx, func(ctx context.Context) (string, error) { return w.tokens.Of(ctx, audience) })
}

// patiently retries until an answer, a final error, or a timeout, which does not cancel a running request. The error is
// that of the last request.
func patiently[T any](
	ctx context.Context, request func(context.Context) (T, error), isFinal ...func(error) bool,
) (T, error) {
	patient, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var last error
	answer, err := retry.Do(patient, retry.APIServer, func(context.Context) (answer T, err error) {
		answer, last = request(ctx)
		return answer, last
	}, isFinal...)
	if ctx.Err() == nil {
		err = last
	}
	return answer, err
}

// Templates lists the templates of the namespace for models; see templates.Options.
func Templates(client *apiclient.Client, namespace string) func(context.Context, string, int, int64) (
	[]templates.Template, bool, error) {
	return func(ctx context.Context, selector string, most int, mostBytes int64) ([]templates.Template, bool, error) {
		found, more, err := client.PodTemplates(ctx, namespace, selector, most, mostBytes)
		var all []templates.Template
		for i := range found {
			all = append(all, templateOf(&found[i]))
		}
		return all, more, err
	}
}

// templateOf omits what models must not see.
func templateOf(t *apiclient.PodTemplate) templates.Template {
	known := templates.Template{Name: t.Metadata.Name, Annotations: t.Metadata.Annotations}
	all := t.Template.Spec.Containers
	i := slices.IndexFunc(all, func(c apiclient.Container) bool { return c.Name == v1beta1.WorkspaceContainer })
	if i = max(i, 0); i < len(all) {
		known.Image, known.Requests, known.Limits = all[i].Image, all[i].Resources.Requests, all[i].Resources.Limits
	}
	return known
}
