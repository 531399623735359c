// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"parley.dev/parley/api/v1beta1"
)

// floorGroup has two kinds without a schema: what a turn costs there, no turn can cost less.
var floorGroup = schema.GroupVersion{Group: "floor.parley.test", Version: "v1"}

// floor plays turns as a program would that does nothing but the writes of a turn, each as soon as a watch shows the
// one before, and one call of the model: no policy, no schema, no second process.
type floor struct {
	bench           *bench
	like            *specimen
	chats, messages dynamic.ResourceInterface
	chatEvents      watch.Interface
	messageEvents   watch.Interface
	chat            *unstructured.Unstructured
	turns           int
}

// newFloor installs the kinds and follows them; close removes them.
func (b *bench) newFloor(ctx context.Context, like *specimen) (f *floor, err error) {
	client, err := dynamic.NewForConfig(b.config)
	if err != nil {
		return nil, fmt.Errorf("creating a client: %w", err)
	}
	f = &floor{bench: b, like: like}
	for plural, resource := range map[string]*dynamic.ResourceInterface{"chats": &f.chats, "messages": &f.messages} {
		if err := b.create(ctx, floorKind(plural)); err != nil && !apierrors.IsAlreadyExists(err) {
			return nil, err
		}
		*resource = client.Resource(floorGroup.WithResource("floor" + plural)).Namespace(namespace)
	}
	// A new kind is not served at once.
	if err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true,
		func(ctx context.Context) (served bool, err error) {
			f.chat, err = f.create(ctx, f.chats, "FloorChat", "chat", &v1beta1.Chat{})
			if apierrors.IsNotFound(err) || apierrors.IsTooManyRequests(err) {
				return false, nil
			}
			return err == nil, err
		}); err != nil {
		return nil, fmt.Errorf("waiting until the kinds of the floor are served: %w", err)
	}
	for resource, events := range map[dynamic.ResourceInterface]*watch.Interface{f.chats: &f.chatEvents,
		f.messages: &f.messageEvents} {
		if *events, err = resource.Watch(ctx, metav1.ListOptions{}); err != nil {
			return nil, fmt.Errorf("watching the floor: %w", err)
		}
	}
	return f, nil
}

func floorKind(plural string) *apiextensionsv1.CustomResourceDefinition {
	names := apiextensionsv1.CustomResourceDefinitionNames{Plural: "floor" + plural,
		Kind: map[string]string{"chats": "FloorChat", "messages": "FloorMessage"}[plural]}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: names.Plural + "." + floorGroup.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: floorGroup.Group, Names: names, Scope: apiextensionsv1.NamespaceScoped,
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: floorGroup.Version, Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{
					Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: new(true)}},
			}},
		},
	}
}

// close ends the watches and removes the kinds with their objects.
func (f *floor) close(ctx context.Context) error {
	f.chatEvents.Stop()
	f.messageEvents.Stop()
	var errs []error
	for _, plural := range []string{"chats", "messages"} {
		errs = append(errs, f.bench.client.Delete(ctx, floorKind(plural)))
	}
	return errors.Join(errs...)
}

// create creates an object of the floor with the spec and status of another one.
func (f *floor) create(ctx context.Context, to dynamic.ResourceInterface, kind, name string, like runtime.Object) (
	*unstructured.Unstructured, error) {
	o, err := floorObject(kind, name, like)
	if err != nil {
		return nil, err
	}
	out, err := to.Create(ctx, o, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("creating %s %s: %w", kind, name, err)
	}
	return out, nil
}

func floorObject(kind, name string, like runtime.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(like)
	if err != nil {
		return nil, fmt.Errorf("copying what a turn writes: %w", err)
	}
	o := &unstructured.Unstructured{Object: map[string]any{}}
	for _, field := range []string{"spec", "status"} {
		if content[field] != nil {
			o.Object[field] = content[field]
		}
	}
	o.SetGroupVersionKind(floorGroup.WithKind(kind))
	o.SetName(name)
	o.SetNamespace(namespace)
	return o, nil
}

// turn plays one turn and returns when the first part of the reply came, and when the turn was seen to be over, both
// from its beginning and without the model's own delay.
func (f *floor) turn(ctx context.Context) (first, whole time.Duration, err error) {
	name := fmt.Sprint("m", f.turns)
	f.turns++
	began := time.Now()
	asked := &v1beta1.ChatMessage{Spec: f.like.asked.Spec}
	if _, err := f.create(ctx, f.messages, "FloorMessage", name, asked); err != nil {
		return 0, 0, err
	}
	if err := seen(ctx, f.messageEvents, name, ""); err != nil {
		return 0, 0, err
	}
	if err := f.write(ctx, &f.like.running); err != nil {
		return 0, 0, err
	}
	if first, err = f.ask(ctx, began); err != nil {
		return 0, 0, err
	}
	replied := &v1beta1.ChatMessage{Spec: f.like.replied.Spec}
	if _, err := f.create(ctx, f.messages, "FloorMessage", name+"-reply", replied); err != nil {
		return 0, 0, err
	}
	if err := seen(ctx, f.messageEvents, name+"-reply", ""); err != nil {
		return 0, 0, err
	}
	if err := f.write(ctx, &f.like.waiting); err != nil {
		return 0, 0, err
	}
	return first - modelDelay, time.Since(began) - modelDelay, nil
}

// write writes a status as large as a Chat's and waits until a watch shows it.
func (f *floor) write(ctx context.Context, status *v1beta1.ChatStatus) error {
	next, err := floorObject("FloorChat", f.chat.GetName(), &v1beta1.Chat{Status: *status})
	if err != nil {
		return err
	}
	next.SetResourceVersion(f.chat.GetResourceVersion())
	if f.chat, err = f.chats.UpdateStatus(ctx, next, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("writing the status of a floor chat: %w", err)
	}
	return seen(ctx, f.chatEvents, f.chat.GetName(), f.chat.GetResourceVersion())
}

// seen waits until a watch shows the object, at that version if one is given.
func seen(ctx context.Context, events watch.Interface, name, version string) error {
	for {
		select {
		case e, ok := <-events.ResultChan():
			o, is := e.Object.(*unstructured.Unstructured)
			if !ok || !is {
				return fmt.Errorf("the watch of the floor ended: %v", e.Object)
			}
			if o.GetName() == name && (version == "" || o.GetResourceVersion() == version) {
				return nil
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// ask streams a reply of the model to its end, and returns when its first part came.
func (f *floor) ask(ctx context.Context, began time.Time) (first time.Duration, err error) {
	body, err := json.Marshal(map[string]any{"model": "scripted", "stream": true,
		"messages": []map[string]string{{"role": "user", "content": f.like.asked.Spec.Content}}})
	if err != nil {
		return 0, fmt.Errorf("asking the model: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost,
		"http://"+f.bench.model+"/v1/chat/completions", strings.NewReader(string(body)))
	if err != nil {
		return 0, fmt.Errorf("asking the model: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, fmt.Errorf("asking the model: %w", err)
	}
	defer func() { _ = response.Body.Close() }()
	lines := bufio.NewScanner(response.Body)
	for lines.Scan() {
		if first == 0 && strings.Contains(lines.Text(), `"content":"I `) {
			first = time.Since(began)
		}
	}
	if first == 0 {
		return 0, fmt.Errorf("the model said nothing: %s", response.Status)
	}
	return first, lines.Err()
}
