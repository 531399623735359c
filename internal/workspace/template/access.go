// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/internal/workspace/protocol"
)

// PolicyName is the name of the NetworkPolicy around the workspaces of a namespace.
const PolicyName = "parley-workspace"

// NetworkPolicy lets only the namespace's generation pods and the gateways reach the agents, and workspaces reach only
// DNS. Another NetworkPolicy that selects the labels of a template can allow more: policies add up.
func NetworkPolicy(namespace, gatewayNamespace string) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: PolicyName, Namespace: namespace, Labels: marks},
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: component(podspec.ComponentWorkspace),
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
			Ingress: []networkingv1.NetworkPolicyIngressRule{{
				From: []networkingv1.NetworkPolicyPeer{{PodSelector: new(component(podspec.ComponentGeneration))},
					podspec.Gateways(gatewayNamespace)},
				Ports: []networkingv1.NetworkPolicyPort{{Protocol: new(corev1.ProtocolTCP),
					Port: new(intstr.FromInt32(protocol.Port))}},
			}},
			Egress: []networkingv1.NetworkPolicyEgressRule{{Ports: dns(53)}, {
				// Policies apply to the port of a pod. On OpenShift, that of DNS differs from the port of the Service.
				Ports: dns(5353),
				To: []networkingv1.NetworkPolicyPeer{{NamespaceSelector: &metav1.LabelSelector{
					MatchLabels: map[string]string{corev1.LabelMetadataName: "openshift-dns"}}}},
			}},
		},
	}
}

func dns(port int32) []networkingv1.NetworkPolicyPort {
	return []networkingv1.NetworkPolicyPort{
		{Protocol: new(corev1.ProtocolUDP), Port: new(intstr.FromInt32(port))},
		{Protocol: new(corev1.ProtocolTCP), Port: new(intstr.FromInt32(port))},
	}
}

func component(name string) metav1.LabelSelector {
	return metav1.LabelSelector{MatchLabels: map[string]string{podspec.LabelComponent: name}}
}

// IssuerConfigMap has the public keys of the cluster's issuer, a JWKS, for the agents of a namespace, which have no
// credentials to fetch them, and the users that may see what is changed.
func IssuerConfigMap(namespace, issuer string, keys []byte, viewers []string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: IssuerKeys, Namespace: namespace, Labels: marks},
		Data: map[string]string{protocol.IssuerFile: issuer, protocol.IssuerKeysFile: string(keys),
			protocol.ViewersFile: strings.Join(viewers, "\n") + "\n"},
	}
}
