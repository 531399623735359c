// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/chatclass"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/internal/netguard/retry"
)

// classes are the ChatClasses of the namespace.
type classes struct {
	informer cache.SharedIndexInformer
	client   *apiclient.Client
	ns       string
	// advisorUses limits the uses of the advisor in the whole cluster; nil: no limit.
	advisorUses *int32
}

func newClasses(client *apiclient.Client, namespace string, advisorUses *int32) *classes {
	watched := client.Classes(namespace).ListerWatcher("")
	return &classes{
		informer: cache.NewSharedIndexInformer(watched, &v1beta1.ChatClass{}, 0, nil), client: client, ns: namespace,
		advisorUses: advisorUses,
	}
}

// apply changes the chat to the settings of its class: the one that the operator has used, or a newer version. It fails
// if the class does not exist, because then the chat's permissions are unknown, or if ctx is done. It returns the
// preamble of the namespace, which then begins the chat's system prompt.
func (c *classes) apply(ctx context.Context, chat *v1beta1.Chat) (preamble string, err error) {
	if has := chat.Status.ChatClass; has != nil {
		class, err := c.get(ctx, has)
		if err != nil {
			return "", err
		}
		with, _ := chatclass.Effective(chat, class)
		chat.Spec = with.Spec
	}
	chat.Spec.Advisor = chatclass.WithinCluster(chat.Spec.Advisor, c.advisorUses)
	if preamble, err = c.preamble(ctx, chat); err != nil {
		return "", err
	}
	chat.Spec.SystemPrompt = chatclass.Behind(preamble, chat.Spec.SystemPrompt)
	return preamble, nil
}

// preamble is that of the namespace; empty if its class has been deleted.
func (c *classes) preamble(ctx context.Context, chat *v1beta1.Chat) (string, error) {
	has := chat.Status.NamespaceClass
	if has == nil {
		return "", nil
	}
	class, err := c.get(ctx, has)
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", err
	}
	return class.Spec.NamespacePreamble, nil
}

// get is the class from the cache. The watch can lag behind that of chats: a missing, older or different class is read
// from the API server.
func (c *classes) get(ctx context.Context, has *v1beta1.AppliedChatClass) (*v1beta1.ChatClass, error) {
	object, ok, _ := c.informer.GetStore().GetByKey(c.ns + "/" + has.Name)
	if class, _ := object.(*v1beta1.ChatClass); ok && string(class.UID) == has.UID && class.Generation >= has.Generation {
		return class, nil
	}
	return retry.Do(ctx, retry.APIServer, func(ctx context.Context) (*v1beta1.ChatClass, error) {
		return c.client.Classes(c.ns).Get(ctx, has.Name)
	}, apierrors.IsNotFound)
}

// restrict restricts a chat in the workspace of another chat to the class of that one. If the class is unknown, the
// chat may do nothing there. It returns why MCP servers of the chat may not run there; empty if they may.
func (c *classes) restrict(ctx context.Context, chat *v1beta1.Chat, owner ownerOf, tools []string) (refused string) {
	if owner == nil || chat.Spec.ParentRef == nil || !chat.Status.Internal.Attempt.HasWorkspace {
		return ""
	}
	root, err := owner(ctx, chat)
	if err == nil {
		var class *v1beta1.ChatClass
		if class, err = c.classOf(ctx, root); err == nil {
			chat.Spec.Tools = chatclass.WithinWorkspace(chat.Spec.Tools, class, tools)
			return chatclass.CommandsRefused(root.Name, class)
		}
	}
	chat.Spec.Tools = chatclass.WithoutWorkspace(chat.Spec.Tools, tools)
	return fmt.Sprintf("the rules of the workspace are not known: %v", err)
}

// ownerOf finds the chat whose workspace a chat works in.
type ownerOf func(ctx context.Context, chat *v1beta1.Chat) (*v1beta1.Chat, error)

// classOf is the class of a chat: that of its newest step, or a newer version; nil if it has none.
func (c *classes) classOf(ctx context.Context, chat *v1beta1.Chat) (*v1beta1.ChatClass, error) {
	if has := chat.Status.ChatClass; has != nil && (chat.Spec.ChatClassName == "" || chat.Spec.ChatClassName == has.Name) {
		return c.get(ctx, has)
	}
	var all []v1beta1.ChatClass
	for _, object := range c.informer.GetStore().List() {
		all = append(all, *object.(*v1beta1.ChatClass))
	}
	class, missing := chatclass.Resolve(all, &chat.Spec)
	if missing != nil {
		return nil, errors.New(missing.Message)
	}
	return class, nil
}

// classError means that the class was deleted.
func classError(chat *v1beta1.Chat) *v1beta1.GenerationError {
	class := cmp.Or(chat.Status.ChatClass, chat.Status.NamespaceClass)
	return &v1beta1.GenerationError{
		Reason:  v1beta1.ErrorChatClassNotFound,
		Message: fmt.Sprintf("ChatClass %s no longer exists", class.Name),
		Advice:  "Create it again, or name another one in the chat, then send a message to continue",
		// The chat waits for the class before the next attempt.
		Retryable: true,
	}
}
