// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workspaces finds the workspaces of chats: whose they are, where their agents listen, and with which token
// they are asked. A token is good for the agent in one pod alone.
package workspaces

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/kube/tokencache"
	"parley.dev/parley/internal/netguard/retry"
	"parley.dev/parley/internal/workspace/client"
	"parley.dev/parley/internal/workspace/protocol"
)

// Options of Workspaces. All are required.
type Options struct {
	// Namespace of the chats.
	Namespace string
	// Chat and Workspace read from the API server.
	Chat      func(ctx context.Context, name string) (*v1alpha1.Chat, error)
	Workspace func(ctx context.Context, name string) (*v1alpha1.Workspace, error)
	// Mint asks for a token of the generation pod's own account.
	Mint tokencache.Mint
	// Now returns the current time.
	Now func() time.Time
}

// Workspaces finds those of a namespace. It is safe for concurrent use.
type Workspaces struct {
	options   Options
	tokens    *tokencache.Cache
	transport http.RoundTripper

	mu    sync.Mutex
	bound map[boundPod]bool
}

// boundPod is a pod that has been told which chat its workspace belongs to.
type boundPod struct{ pod, chat string }

// maxBound bounds how many bindings are remembered. One that was forgotten is made again, which changes nothing.
const maxBound = 1000

// New returns workspaces.
func New(o Options) *Workspaces {
	return &Workspaces{options: o, tokens: tokencache.New(o.Mint, o.Now), transport: client.NewTransport(),
		bound: map[boundPod]bool{}}
}

// Has reports whether the chat's family had a workspace when the attempt began.
func Has(chat *v1alpha1.Chat) bool { return chat.Status.Internal.Attempt.HasWorkspace }

// Of is a client of the agent in the workspace of the chat's family. The error tells the model why there is none.
func (w *Workspaces) Of(ctx context.Context, chat *v1alpha1.Chat) (*client.Client, error) {
	root, err := w.Owner(ctx, chat)
	if err != nil {
		return nil, err
	}
	switch { // Of another chat than its own an attempt does not know what is in force.
	case !Has(chat) && chat == root && root.Spec.Workspace == nil:
		return nil, fmt.Errorf("chat %s has no workspace: its spec.workspace names none", root.Name)
	case !Has(chat) && chat == root:
		return nil, fmt.Errorf("chat %s has no workspace yet: choose a template for it with create_workspace", root.Name)
	case !Has(chat):
		return nil, fmt.Errorf("chat %s, which this one would share a workspace with, has none", root.Name)
	}
	pod, err := w.pod(ctx, root)
	if err != nil {
		return nil, err
	}
	audience := protocol.Audience(w.options.Namespace, pod.UID)
	c := client.New(client.Options{Address: pod.Address, Chat: string(root.UID), Pod: pod.UID, Transport: w.transport,
		Token: func(ctx context.Context) (string, error) { return w.token(ctx, audience) },
		Gone:  func(ctx context.Context) bool { return w.gone(ctx, root, pod.UID) }})
	return c, w.bind(ctx, c, boundPod{pod.UID, string(root.UID)})
}

// Owner is the chat at the top of the family, whose workspace all of it works in.
func (w *Workspaces) Owner(ctx context.Context, chat *v1alpha1.Chat) (*v1alpha1.Chat, error) {
	for range v1alpha1.MaxFamilyDepth + 1 {
		if chat.Spec.ParentRef == nil {
			return chat, nil
		}
		above, err := read(ctx, w.options.Chat, chat.Spec.ParentRef.Name)
		if err != nil {
			return nil, fmt.Errorf("reading chat %s, the parent of this one: %w", chat.Spec.ParentRef.Name, err)
		}
		if uid := chat.Status.Internal.ParentUID; uid != "" && uid != string(above.UID) {
			return nil, fmt.Errorf("chat %s, the parent of this one, is gone", above.Name)
		}
		chat = above
	}
	return nil, fmt.Errorf("the chats above this one go deeper than any family")
}

// unreadyPatience is how long a call waits for a pod that was ready and is not, as after a restart of its kubelet:
// 10 s.
const unreadyPatience = 10 * time.Second

// pod is that of the root's workspace, if it is ready. The operator saw to that before the calls were to be run, so
// that whatever is missing now is for people to fix, or has just been lost. It waits for a pod that may be ready again.
func (w *Workspaces) pod(ctx context.Context, root *v1alpha1.Chat) (pod *v1alpha1.WorkspacePod, err error) {
	for end := w.options.Now().Add(unreadyPatience); ; {
		pod, passes, err := w.look(ctx, root)
		if !passes || w.options.Now().After(end) {
			return pod, err
		}
		if retry.Sleep(ctx, unreadyPatience/40) != nil {
			return nil, err
		}
	}
}

// look returns the pod of the root's workspace, or why there is none. passes is true if that may end by itself soon.
func (w *Workspaces) look(ctx context.Context, root *v1alpha1.Chat) (_ *v1alpha1.WorkspacePod, passes bool, _ error) {
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
	ready := meta.FindStatusCondition(workspace.Status.Conditions, v1alpha1.ConditionReady)
	pod := workspace.Status.Pod
	switch {
	case ready == nil:
		return nil, false, fmt.Errorf("it is about to start; try again in a moment")
	case workspace.Status.Phase != v1alpha1.WorkspacePhaseReady || pod == nil || pod.Address == "":
		passes = v1alpha1.ReasonOf(ready) == v1alpha1.ReasonPodLost &&
			workspace.Status.Phase == v1alpha1.WorkspacePhaseStarting
		return nil, passes, fmt.Errorf("%s: %s", ready.Reason, ready.Message)
	}
	return pod, false, nil
}

// gone reports whether the root's workspace has lost the pod. What cannot be read is not known to be gone.
func (w *Workspaces) gone(ctx context.Context, root *v1alpha1.Chat, pod string) bool {
	workspace, err := w.options.Workspace(ctx, root.Name)
	if err != nil {
		return apierrors.IsNotFound(err)
	}
	return !belongsTo(workspace, root.UID) || lost(&workspace.Status, pod)
}

// lost reports whether a workspace has another pod by now, or none, or removes it. A pod that only does not answer may
// be back: its container is restarted.
func lost(status *v1alpha1.WorkspaceStatus, pod string) bool {
	return status.Pod == nil || status.Pod.UID != pod ||
		status.Phase == v1alpha1.WorkspacePhaseStopping || status.Phase == v1alpha1.WorkspacePhaseStopped
}

func belongsTo(w *v1alpha1.Workspace, chat types.UID) bool {
	owner := metav1.GetControllerOf(w)
	return owner != nil && owner.UID == chat
}

// bind tells the agent, once in the life of its pod, which chat it works for.
func (w *Workspaces) bind(ctx context.Context, c *client.Client, pod boundPod) error {
	w.mu.Lock()
	known := w.bound[pod]
	w.mu.Unlock()
	if known {
		return nil
	}
	if err := c.Bind(ctx); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.bound) >= maxBound {
		clear(w.bound)
	}
	w.bound[pod] = true
	return nil
}
