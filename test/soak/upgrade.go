// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
)

// upgrade moves an installation between the images of two versions.
type upgrade struct {
	core   kubernetes.Interface
	images []string
	log    *slog.Logger
	// done are the moves that were made.
	done []move
	// approved counts the calls that were approved.
	approved atomic.Int64
}

// move is a move of a component to an image.
type move struct {
	component, to string
	began         time.Time
}

// approve approves each call that waits, until ctx ends.
func (u *upgrade) approve(ctx context.Context, w *world) {
	for pause(ctx, 300*time.Millisecond) {
		var chats v1beta1.ChatList
		if err := w.client.List(ctx, &chats, client.InNamespace(w.ns),
			client.MatchingFields{"status.phase": string(v1beta1.ChatRequiresAction)}); err != nil {
			continue // The API server is asked again.
		}
		for i := range chats.Items {
			u.approveCalls(ctx, w, &chats.Items[i])
		}
	}
}

func (u *upgrade) approveCalls(ctx context.Context, w *world, chat *v1beta1.Chat) {
	if chat.Status.RequiresAction == nil {
		return
	}
	for _, call := range chat.Status.RequiresAction.ToolCalls {
		// The name follows from the decision, so that one whose answer was lost is made once.
		name := fmt.Sprintf("%s-%d-%.8s", chat.Name, chat.Status.History.Version, strings.TrimPrefix(call.Digest, "sha256:"))
		err := w.client.Create(ctx, &v1beta1.ToolApproval{ObjectMeta: w.meta(name), Spec: v1beta1.ToolApprovalSpec{
			ChatRef: v1beta1.ChatReference{Name: chat.Name}, ToolCallID: call.ID, Decision: v1beta1.DecisionApprove,
			Digest: call.Digest}})
		switch {
		case err == nil:
			u.approved.Add(1)
		case !apierrors.IsAlreadyExists(err):
			u.log.Warn("a call is not approved", "chat", chat.Name, "error", err)
		}
	}
}

func newUpgrade(w *world) *upgrade {
	return &upgrade{core: w.core, images: w.images, log: w.log}
}

// unmade are the moves that were not made.
func (u *upgrade) unmade() (all []move) {
	for _, component := range []string{"manager", "gateway"} {
		for _, image := range u.images {
			if !slices.ContainsFunc(u.done, func(m move) bool { return m.component == component && m.to == image }) {
				all = append(all, move{component: component, to: image})
			}
		}
	}
	return all
}

// isUnfinished reports whether there is an upgrade, and moves of it were not made.
func (u *upgrade) isUnfinished() bool { return u != nil && len(u.unmade()) > 0 }

// missing is what the soak has not seen.
func (u *upgrade) missing(questions []*question) (problems []string) {
	for _, m := range u.unmade() {
		problems = append(problems, fmt.Sprintf("the %s was never moved to %s: give it more time", m.component, m.to))
	}
	if u.approved.Load() == 0 {
		problems = append(problems, "no call waited for an approval: give it more chats or more time")
	}
	for _, component := range []string{"manager", "gateway"} {
		if u.commandsDuring(component, questions) == 0 {
			problems = append(problems, "no command ran while the "+component+" was moved: give it more chats or more time")
		}
	}
	return problems
}

// moves are its deeds: each moves a component to the other image.
func (u *upgrade) moves() []deed {
	deeds := make([]deed, 0, 2)
	for _, component := range []string{"manager", "gateway"} {
		deeds = append(deeds, deed{"move the " + component + " to the other version",
			func(ctx context.Context) (string, error) { return u.move(ctx, component) }})
	}
	return deeds
}

// move moves a component to the other image, and waits until it runs from that.
func (u *upgrade) move(ctx context.Context, component string) (string, error) {
	deployments := u.core.AppsV1().Deployments(systemNamespace)
	name := "parley-" + component
	d, err := deployments.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("reading deployment %s: %w", name, err)
	}
	to := u.images[0]
	if d.Spec.Template.Spec.Containers[0].Image == to {
		to = u.images[1]
	}
	made := move{component: component, to: to, began: time.Now()}
	if d, err = deployments.Patch(ctx, name, types.StrategicMergePatchType, imagePatch(component, to),
		metav1.PatchOptions{}); err != nil {
		return "", fmt.Errorf("changing the image of deployment %s: %w", name, err)
	}
	for !isRolledOut(d) {
		if !pause(ctx, 200*time.Millisecond) {
			return "", fmt.Errorf("deployment %s does not become ready with image %s", name, to)
		}
		if d, err = deployments.Get(ctx, name, metav1.GetOptions{}); err != nil {
			return "", fmt.Errorf("reading deployment %s: %w", name, err)
		}
	}
	u.done = append(u.done, made)
	return to, nil
}

// finish moves to the second image what is not there yet.
func (u *upgrade) finish(ctx context.Context) error {
	for _, component := range []string{"manager", "gateway"} {
		d, err := u.core.AppsV1().Deployments(systemNamespace).Get(ctx, "parley-"+component, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("reading deployment parley-%s: %w", component, err)
		}
		if d.Spec.Template.Spec.Containers[0].Image == u.images[1] {
			continue
		}
		if _, err := u.move(ctx, component); err != nil {
			return err
		}
		u.log.Info("the upgrade ends", "component", component, "image", u.images[1])
	}
	return nil
}

// imagePatch sets the image of a component, and that of generation pods, which the manager has in a variable.
func imagePatch(component, image string) []byte {
	container := map[string]any{"name": component, "image": image}
	if component == "manager" {
		container["env"] = []map[string]string{{"name": "PARLEY_IMAGE", "value": image}}
	}
	patch, _ := json.Marshal(map[string]any{"spec": map[string]any{"template": map[string]any{
		"spec": map[string]any{"containers": []any{container}}}}}) // It always encodes.
	return patch
}

func isRolledOut(d *appsv1.Deployment) bool {
	s := d.Status
	return s.ObservedGeneration >= d.Generation && s.UpdatedReplicas == *d.Spec.Replicas &&
		s.Replicas == s.UpdatedReplicas && s.ReadyReplicas == s.Replicas
}

// parseImages reads the two images of an upgrade; none for the empty text.
func parseImages(text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	images := strings.Split(text, ",")
	if len(images) != 2 || images[0] == "" || images[1] == "" {
		return nil, fmt.Errorf("--images is %q: give two images, the earlier version's and the later one's", text)
	}
	return images, nil
}
