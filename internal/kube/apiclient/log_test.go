// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package apiclient_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"parley.dev/parley/internal/kube/apiclient"
)

func TestErrorsDuringUninstallationAreWarnings(t *testing.T) {
	chats := schema.GroupResource{Group: "parley.dev", Resource: "chats"}
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"a list of a kind that is not served": {fmt.Errorf("listing the chats: %w",
			apierrors.NewGenericServerResponse(404, "get", chats, "", "404 page not found", 0, true)), "WARN"},
		"a kind that is not discovered": {&meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "Chat"}}, "WARN"},
		"an account that was deleted":   {apierrors.NewUnauthorized("Unauthorized"), "WARN"},
		"a right that was taken": {apierrors.NewForbidden(chats, "",
			errors.New(`User "system:serviceaccount:a:b" cannot list resource "chats"`)), "WARN"},
		"a namespace that is being deleted": {&apierrors.StatusError{ErrStatus: metav1.Status{
			Reason:  metav1.StatusReasonForbidden,
			Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}},
		}}, "WARN"},
		"an object that a policy denies":    {apierrors.NewForbidden(chats, "c", errors.New("exceeded quota")), "ERROR"},
		"a request of a program that stops": {&url.Error{Op: "Get", URL: "https://a", Err: context.Canceled}, "WARN"},
		"a missing object":                  {apierrors.NewNotFound(chats, "c"), "ERROR"},
		"another error":                     {errors.New("no connection"), "ERROR"},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			log := apiclient.NewLogger(&out, slog.LevelInfo)
			log.With("a", 1).WithGroup("b").Error("Failed", "err", c.err)
			klog.Background().Error(c.err, "Failed")
			klog.Flush()
			if n := strings.Count(out.String(), `"level":"`+c.want+`"`); n != 2 {
				t.Errorf("%d lines are of level %s:\n%s", n, c.want, out.String())
			}
		})
	}
}
