// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package denial

import (
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"parley.dev/parley/test/kit/check"
)

func TestAServerInTroubleRefusesNothing(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	terminating := apierrors.NewForbidden(pods, "pod-x7k2p", errors.New("namespace ns is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"a quota": {apierrors.NewForbidden(pods, "pod-x7k2p", errors.New("exceeded quota: nothing")),
			"exceeded quota: nothing"},
		"a webhook that does not answer": {
			apierrors.NewInternalError(errors.New(`failed calling webhook "pods.example.com": connection refused`)),
			`Internal error occurred: failed calling webhook "pods.example.com": connection refused`,
		},
		"etcd that does not answer": {apierrors.NewInternalError(errors.New("etcdserver: request timed out")), ""},
		"a plugin of the API server that is starting": {
			apierrors.NewForbidden(pods, "pod-x7k2p", errors.New("not yet ready to handle request")), ""},
		"a namespace that is being deleted": {terminating, ""},
		"a namespace that is gone": {
			apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "ns"), ""},
		"a server that is starting": {apierrors.NewServiceUnavailable("not ready"), ""},
		"too many requests":         {apierrors.NewTooManyRequests("later", 1), ""},
		"a lost connection":         {errors.New("connection reset by peer"), ""},
		"no error":                  {nil, ""},
	} {
		check.Equal(t, name, c.want, Of(c.err, "pod-x7k2p"))
		if c.err == nil {
			continue
		}
		check.Equal(t, name, c.want, Of(fmt.Errorf("creating it: %w", c.err), "pod-x7k2p"))
	}
}
