// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/changes"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/tree"
	"parley.dev/parley/internal/gateway/refusal"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/internal/workspace/client"
	"parley.dev/parley/internal/workspace/protocol"
)

const (
	getChanges = "getChanges"
	getPatch   = "getPatch"
)

// Changes are what is changed in the workspace of a chat.
type Changes struct{ Body *changes.Changes }

// OfRepository is the repository that a request is about.
type OfRepository struct {
	OfChat

	Repository string `query:"repository" maxLength:"4096" doc:"The path of the Git repository, as in the changes. Default: the only repository; if there is none, files outside of repositories."`
}

// Patch is a patch for git apply.
type Patch struct {
	ContentType string `header:"Content-Type"`
	Disposition string `header:"Content-Disposition"`
	Sniffing    string `header:"X-Content-Type-Options"`
	Body        []byte
}

// workspaces are the operations on what is changed in them.
type workspaces struct{ api *api }

func (w workspaces) register() {
	const (
		path = "/namespaces/{namespace}/chats/{chat}/changes"
		who  = " Sub-chats share the workspace of the chat at the top. For those who may get workspaces/changes."
	)
	register(w.api, operation(getChanges, http.MethodGet, path, "Read what is changed in the workspace of a chat",
		"All Git repositories and other files, with diffs. At most 500 files, 256 KiB of diff of each, and 4 MiB in all."+
			who, http.StatusOK),
		func(ctx context.Context, in *OfChat) (_ *Changes, err error) {
			out := &Changes{}
			err = w.ask(ctx, in, "get", "changes", func(agent *client.Client) error {
				out.Body, err = agent.Changes(ctx)
				return err
			})
			return out, err
		})
	patch := operation(getPatch, http.MethodGet, path+".patch", "Read the changes of a Git repository as a patch",
		"For git apply, with binary files. It begins with a line for each file that is not in it."+who, http.StatusOK)
	patch.Responses = map[string]*huma.Response{"200": {Description: "OK", Content: map[string]*huma.MediaType{
		"text/x-diff": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}}}}
	register(w.api, patch, w.patch)
}

func (w workspaces) patch(ctx context.Context, in *OfRepository) (*Patch, error) {
	out := &Patch{ContentType: "text/x-diff", Disposition: "attachment", Sniffing: "nosniff"}
	return out, w.ask(ctx, &in.OfChat, "get", "changes", func(agent *client.Client) (err error) {
		out.Body, err = agent.Patch(ctx, in.Repository)
		return err
	})
}

// ask asks the agent in the workspace of a chat, if the caller has the right to a subresource of the workspace.
func (w workspaces) ask(ctx context.Context, in *OfChat, verb, subresource string,
	ask func(*client.Client) error) error {
	get := func(name string) (*v1beta1.Chat, error) { return w.api.client.Chats(in.Namespace).Get(ctx, name) }
	chat, err := get(in.Chat)
	if err == nil {
		chat, err = tree.Top(chat, get)
	}
	if err != nil {
		return err
	}
	right := apiclient.ResourceAttributes{Verb: verb, Resource: "workspaces", Subresource: subresource,
		Namespace: in.Namespace, Name: chat.Name}
	role := "parley-chat-user"
	if verb == "update" {
		role = "parley-chat-admin"
	}
	if err := may(ctx, w.api.client, right, role); err != nil {
		return err
	}
	pod, err := w.pod(ctx, chat)
	if err != nil {
		return err
	}
	agent, err := w.api.options.Agent(ctx, chat, pod)
	if err == nil {
		err = ask(agent)
	}
	return fromAgent(chat.Name, err)
}

// pod is that of a chat's workspace.
func (w workspaces) pod(ctx context.Context, chat *v1beta1.Chat) (*v1beta1.WorkspacePod, error) {
	workspace, err := w.api.client.Workspaces(chat.Namespace).Get(ctx, chat.Name)
	if apierrors.IsNotFound(err) || err == nil && !metav1.IsControlledBy(workspace, chat) {
		return nil, notFound("chat %s has no workspace yet: its spec.workspace says what it gets with its first call of a "+
			"tool that needs one", chat.Name)
	}
	if err != nil {
		return nil, err
	}
	if workspace.Status.Phase == v1beta1.WorkspacePhaseReady && workspace.Status.Pod != nil {
		return workspace.Status.Pod, nil
	}
	why := "it is about to start: try again"
	if ready := meta.FindStatusCondition(workspace.Status.Conditions, v1beta1.ConditionReady); ready != nil {
		why = ready.Reason + ": " + ready.Message
	}
	return nil, refused{&refusal.Error{Status: http.StatusConflict, Reason: refusal.Conflict, Message: fmt.Sprintf(
		"workspace %s is not running, so its files are out of reach: %s", chat.Name, why)}}
}

// fromAgent converts an error of the agent in a chat's workspace.
func fromAgent(workspace string, err error) error {
	if _, done := errors.AsType[refused](err); done || err == nil {
		return err
	}
	no := &refusal.Error{Status: http.StatusServiceUnavailable, Reason: refusal.WorkspaceUnavailable,
		RetryAfter: time.Second, Cause: err,
		Message: fmt.Sprintf("workspace %s does not answer: %v. Try again, and see whether its pod runs and its "+
			"NetworkPolicies let the gateway reach it", workspace, err)}
	answer, ok := errors.AsType[*protocol.Error](err)
	if !ok {
		return refused{no}
	}
	switch answer.Code {
	case protocol.NotFound:
		return notFound("workspace %s: %s", workspace, answer.Message)
	case protocol.BadRequest, protocol.Forbidden:
		no.Status, no.Reason, no.RetryAfter = http.StatusConflict, refusal.Conflict, 0
		no.Message = fmt.Sprintf("the agent of workspace %s does not know this gateway, or is older than it: restart the "+
			"workspace, by setting its spec.suspend to true and to false again", workspace)
	case protocol.Unavailable:
		no.Message = fmt.Sprintf("workspace %s has as many requests as it takes: try again", workspace)
	case protocol.NotUnique:
		return badRequest("workspace %s: %s", workspace, answer.Message)
	default:
		no.Status, no.Reason, no.RetryAfter = http.StatusConflict, refusal.Conflict, 0
		no.Message = fmt.Sprintf("workspace %s: %s", workspace, answer.Message)
	}
	return refused{no}
}
