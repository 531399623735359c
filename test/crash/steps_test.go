// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
)

// step is one thing that happens in a scenario.
type step func(ctx context.Context, w *world) error

// fromHere says that what comes before is as in other scenarios: only the writes after it are disturbed.
func fromHere() step {
	return func(_ context.Context, w *world) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		if len(w.lives) > 0 {
			w.common = len(w.lives[0].Writes())
		}
		return nil
	}
}

// creates is a step that creates an object.
func creates(o client.Object) step {
	return func(ctx context.Context, w *world) error {
		o := chattest.In(w.ns, o.DeepCopyObject().(client.Object)) // Each run has its own.
		if err := cluster.Client.Create(ctx, o); err != nil {
			return fmt.Errorf("creating %T %s: %w", o, o.GetName(), err)
		}
		return nil
	}
}

// prompts creates the chat with a prompt, and with what change makes of it; without a prompt if that is empty.
func prompts(prompt string, change ...func(*v1beta1.Chat)) step {
	return func(ctx context.Context, w *world) error {
		chat := chattest.In(w.ns, chattest.Chat(chatName, append(change, chattest.Prompt(prompt))...))
		if err := cluster.Client.Create(ctx, chat); err != nil {
			return fmt.Errorf("creating the chat: %w", err)
		}
		return w.await(ctx, "the chat is there", func(s *snapshot) bool { return s.chat != nil && s.chat.UID == chat.UID })
	}
}

// inWorkspace gives the chat a workspace, which no call needs.
func inWorkspace(chat *v1beta1.Chat) {
	chat.Spec.Workspace = &v1beta1.WorkspaceSource{PodTemplateRef: &v1beta1.WorkspaceTemplateReference{Name: "any"}}
}

// goesAtRest lets the chat go a second after it came to rest.
func goesAtRest(chat *v1beta1.Chat) {
	chat.Spec.Retention = &v1beta1.ChatRetention{DeleteAfterSeconds: new(int32(1))}
}

// isArchived has the chat archived before it goes.
func isArchived(chat *v1beta1.Chat) { chat.Spec.Retention.Archive = new(true) }

// hasArchive waits until the chat's archive has so many messages.
func hasArchive(messages int) step {
	return func(ctx context.Context, w *world) error {
		return wait.PollUntilContextCancel(ctx, lag, true, func(ctx context.Context) (bool, error) {
			found, err := archiveStore.Of(ctx, w.ns, chatName)
			return len(found) == 1 && found[0].Objects["ChatMessage"] == messages, err
		})
	}
}

// says creates a User message, with what change makes of it.
func says(name string, change ...func(*v1beta1.ChatMessage)) step {
	return creates(chattest.User(chatName, name, change...))
}

// changes is a change of a User message by its author.
func changes(name string, change func(*v1beta1.ChatMessage)) step {
	return func(ctx context.Context, w *world) error {
		s, err := read(ctx, cluster.Client, w.ns)
		if err != nil {
			return err
		}
		m := s.message(name)
		before := m.DeepCopy()
		change(m)
		if err := cluster.Client.Patch(ctx, m, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("changing message %s: %w", name, err)
		}
		return nil
	}
}

// seen waits until all managers know of a message: to one whose view of messages lags more than that of chats it comes
// too late to cut in at once.
func seen(name string) step {
	return func(ctx context.Context, w *world) error {
		return wait.PollUntilContextCancel(ctx, lag, true, func(ctx context.Context) (bool, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			return !slices.ContainsFunc(w.lives, func(m *manager) bool { return !m.sees(ctx, w.ns, name) }), nil
		})
	}
}

// edits changes what a User message says.
func edits(name, content string) step {
	return changes(name, func(m *v1beta1.ChatMessage) { m.Spec.Content = content })
}

// deletesHead deletes the newest message of the history.
func deletesHead() step {
	return func(ctx context.Context, w *world) error {
		s, err := read(ctx, cluster.Client, w.ns)
		if err != nil {
			return err
		}
		return deletes(s.chat.Status.History.Head)(ctx, w)
	}
}

// deletes takes a message away.
func deletes(name string) step { return removes(chattest.User(chatName, name)) }

// deletesChat deletes the chat.
func deletesChat() step { return removes(chattest.Chat(chatName)) }

func removes(o client.Object) step {
	return func(ctx context.Context, w *world) error {
		o := chattest.In(w.ns, o.DeepCopyObject().(client.Object))
		if err := cluster.Client.Delete(ctx, o); err != nil {
			return fmt.Errorf("deleting %T %s: %w", o, o.GetName(), err)
		}
		return nil
	}
}

// changesChat changes the chat as a user would who knows nothing of its newest version.
func changesChat(change func(*v1beta1.Chat)) step {
	return func(ctx context.Context, w *world) error {
		s, err := read(ctx, cluster.Client, w.ns)
		if err != nil {
			return err
		}
		before := s.chat.DeepCopy()
		change(s.chat)
		if err := cluster.Client.Patch(ctx, s.chat, client.MergeFrom(before)); err != nil {
			return fmt.Errorf("changing the chat: %w", err)
		}
		return nil
	}
}

// runsPods lets every generation pod become ready, as a kubelet does.
func runsPods() step {
	return func(ctx context.Context, w *world) error {
		s, err := readAll(ctx, w.ns)
		if err != nil {
			return err
		}
		for i := range s.pods {
			pod, now := &s.pods[i], metav1.Now()
			pod.Status.Phase = corev1.PodRunning
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue,
				LastTransitionTime: now}}
			if err := cluster.Client.Status().Update(ctx, pod); err != nil {
				return fmt.Errorf("making pod %s ready: %w", pod.Name, err)
			}
		}
		return nil
	}
}

// annotates sets an annotation of the chat.
func annotates(key, value string) step {
	return changesChat(func(c *v1beta1.Chat) { metav1.SetMetaDataAnnotation(&c.ObjectMeta, key, value) })
}

// suspends holds the chat's work, or no longer.
func suspends(on bool) step { return changesChat(func(c *v1beta1.Chat) { c.Spec.Suspend = on }) }

// losesPods deletes every generation pod.
func losesPods() step {
	return func(ctx context.Context, w *world) error {
		if err := cluster.Client.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(w.ns),
			client.GracePeriodSeconds(0)); err != nil {
			return fmt.Errorf("deleting the pods: %w", err)
		}
		return nil
	}
}

// configures creates the ChatModelConfig of a scenario that begins without one, with what change makes of it.
func configures(change ...func(*v1beta1.ChatModelConfigSpec)) step {
	return creates(chattest.Config("default", append(change, chattest.Default)...))
}

// saysOfTurn lets the generation pod say what became of the turn, whose last reply is committed.
func saysOfTurn(summary string) step {
	return func(ctx context.Context, w *world) error {
		s, err := read(ctx, cluster.Client, w.ns)
		if err != nil {
			return err
		}
		m := chattest.TurnSummary(s.message(s.chat.Status.History.Head), summary)
		if err := cluster.Client.Create(ctx, m); err != nil {
			return fmt.Errorf("creating %s: %w", m.Name, err)
		}
		return nil
	}
}

// answers lets the generation pod answer the attempt under way, or the next one.
func answers(replies ...chattest.Reply) step {
	return func(ctx context.Context, w *world) error {
		w.generator.yields = append(w.generator.yields, replies)
		return w.await(ctx, "an attempt is answered", func(*snapshot) bool { return len(w.generator.yields) == 0 })
	}
}
