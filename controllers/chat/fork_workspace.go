// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/chatclass"
	"parley.dev/parley/internal/chat/conditions"
	"parley.dev/parley/internal/kube/denial"
)

// copyWorkspace copies the files of the source's workspace to that of the fork, if spec.fork says so. Until they are
// copied, the error is a *problemError.
func (r *Reconciler) copyWorkspace(ctx context.Context, s *scope) error {
	if s.facts.Chat.Spec.Fork.Workspace != v1beta1.ForkWorkspaceCopy {
		return r.cancelCopy(ctx, s.facts.Chat)
	}
	w, err := r.provideCopy(ctx, s)
	if err != nil {
		return err
	}
	return copyProblem(s.facts.Chat, w)
}

// provideCopy creates the workspace of the fork. Until the files are copied, it is made from what the chat names now.
func (r *Reconciler) provideCopy(ctx context.Context, s *scope) (*v1beta1.Workspace, error) {
	var w v1beta1.Workspace
	missing := r.actuator.client.Get(ctx, client.ObjectKeyFromObject(s.facts.Chat), &w)
	if client.IgnoreNotFound(missing) != nil {
		return nil, fmt.Errorf("reading workspace %s: %w", s.facts.Chat.Name, missing)
	}
	if missing == nil && (!metav1.IsControlledBy(&w, s.facts.Chat) || !w.IsCopying()) {
		return &w, nil
	}
	classes, err := r.gatherer.classes.readClasses(ctx, s)
	if err != nil {
		return nil, err
	}
	chat := chatclass.Of(s.facts.Chat, classes)
	source := chat.WorkspaceSource()
	switch {
	case !source.HasStorage():
		return nil, uncopied("The workspace of this chat has no storage to copy files to, which spec.workspace." +
			"podTemplateRef.storage gives it")
	case missing != nil:
		return r.createCopy(ctx, chat)
	case equality.Semantic.DeepEqual(&w.Spec.Source, source):
		return &w, nil
	}
	w.Spec.Source = *source
	if err := r.actuator.client.Update(ctx, &w); err != nil {
		return nil, fmt.Errorf("correcting the source of workspace %s: %w", w.Name, err)
	}
	return &w, nil
}

// cancelCopy ends a copy that is no longer wanted. The cache may not show the workspace yet.
func (r *Reconciler) cancelCopy(ctx context.Context, chat *v1beta1.Chat) error {
	var w v1beta1.Workspace
	err := r.actuator.live.Get(ctx, client.ObjectKeyFromObject(chat), &w)
	if err == nil && metav1.IsControlledBy(&w, chat) && w.IsCopying() {
		w.Spec.CopyFrom = ""
		err = r.actuator.client.Update(ctx, &w)
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("canceling the copy of files to workspace %s: %w", chat.Name, err)
	}
	return nil
}

// uncopied is the problem that a fork does not have the files yet.
func uncopied(format string, args ...any) error {
	return problem(v1beta1.ReasonForkFilesNotCopied, format+". Fix that, or set spec.fork.workspace to None to begin "+
		"without the files", args...)
}

// copyProblem is why the workspace of the fork does not have the files yet; nil if it has them.
func copyProblem(chat *v1beta1.Chat, w *v1beta1.Workspace) error {
	ready := meta.FindStatusCondition(w.Status.Conditions, v1beta1.ConditionReady)
	switch {
	case !metav1.IsControlledBy(w, chat):
		return uncopied("Workspace %s belongs to another chat, perhaps a former one that is being removed", w.Name)
	case !w.IsCopying():
		return nil
	case ready != nil && ready.Status == metav1.ConditionFalse:
		return uncopied("The workspace of chat %s is not copied: %s", chat.Spec.Fork.Chat, ready.Message)
	}
	message := "Copying the workspace of chat " + chat.Spec.Fork.Chat
	if ready != nil {
		message += ": " + ready.Message
	}
	return &problemError{conditions.ForkProblem{Reason: v1beta1.ReasonForkFilesNotCopied, Message: message,
		MayPass: true}}
}

// createCopy creates the workspace of the fork, which begins with the files of the source's.
func (r *Reconciler) createCopy(ctx context.Context, chat *v1beta1.Chat) (*v1beta1.Workspace, error) {
	source, err := r.forker.source(ctx, chat)
	if err != nil {
		return nil, err
	}
	var from v1beta1.Workspace
	err = r.actuator.live.Get(ctx, client.ObjectKeyFromObject(source), &from)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return nil, fmt.Errorf("reading workspace %s: %w", source.Name, err)
	case err != nil || !metav1.IsControlledBy(&from, source) || from.Status.Claim == "":
		return nil, uncopied("Chat %s has no workspace of its own with files in storage", source.Name)
	}
	w, err := r.actuator.createWorkspace(ctx, chat, string(from.UID))
	if words := denial.Of(err, chat.Name); words != "" {
		return nil, uncopied("The API server refuses the workspace: %s", words)
	}
	return w, err
}
