// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
)

func TestEachPageIsAskedForAsTheFirst(t *testing.T) {
	pages := map[string]*v1beta1.ChatList{
		"":  {ListMeta: metav1.ListMeta{Continue: "2"}, Items: []v1beta1.Chat{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}},
		"2": {Items: []v1beta1.Chat{{ObjectMeta: metav1.ObjectMeta{Name: "b"}}}},
	}
	var names []string
	want := metav1.ListOptions{FieldSelector: "metadata.name=a", LabelSelector: "team=blue", Limit: 1}
	err := Each(t.Context(), want, func(_ context.Context, o metav1.ListOptions) (*v1beta1.ChatList, error) {
		page := pages[o.Continue]
		if o.Continue = ""; o != want {
			t.Errorf("asked for %+v", o)
		}
		return page, nil
	}, func(c *v1beta1.Chat) { names = append(names, c.Name) })
	if err != nil || !slices.Equal(names, []string{"a", "b"}) {
		t.Errorf("read %v: %v", names, err)
	}
	failed := errors.New("gone")
	err = Each(t.Context(), want, func(context.Context, metav1.ListOptions) (*v1beta1.ChatList, error) {
		return nil, failed
	}, func(*v1beta1.Chat) { t.Error("a page that was not read is taken") })
	if !errors.Is(err, failed) {
		t.Errorf("it ends with %v", err)
	}
}
