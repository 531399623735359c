// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// OfTheNode4 and OfTheNode6 are the addresses that generation pods do not reach, because clouds serve metadata and the
// credentials of nodes there: link-local ones, and those that package hostlist names: of Alibaba, Azure and Oracle, and
// of AWS and Google by IPv6.
var (
	OfTheNode4 = []string{"169.254.0.0/16", "100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32"}
	OfTheNode6 = []string{"fe80::/10", "fd00:ec2::/32", "fd20:ce::254/128"}
)

// anywherePorts are the TCP ports of what is needed from every address: DNS, which nodes may serve at a link-local one
// and Azure serves next to its metadata, API servers, and collectors of traces. Some network plugins take a node, and
// so the API server on it, for no address of an ipBlock. No cloud serves metadata at one of them.
var anywherePorts = []int32{53, 443, 4317, 4318, 6443, 8443, 16443}

// NetworkPolicy lets only gateways reach the relay, and only pods of namespaces with LabelMetrics the metrics. Calls to
// models go out to everywhere but the addresses of nodes' metadata;
// which hosts those may be, only the cluster's owner can say.
func NetworkPolicy(namespace, gatewayNamespace string) *networkingv1.NetworkPolicy {
	return &networkingv1.NetworkPolicy{
		ObjectMeta: accessMeta(namespace),
		Spec: networkingv1.NetworkPolicySpec{
			PodSelector: metav1.LabelSelector{MatchLabels: map[string]string{LabelComponent: ComponentGeneration}},
			PolicyTypes: []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress},
			Ingress:     ingress(gatewayNamespace),
			Egress:      egress(),
		},
	}
}

// Gateways are the gateways of a namespace.
func Gateways(namespace string) networkingv1.NetworkPolicyPeer {
	return networkingv1.NetworkPolicyPeer{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
		PodSelector:       &metav1.LabelSelector{MatchLabels: map[string]string{"app.kubernetes.io/component": "gateway"}},
	}
}

func ingress(gatewayNamespace string) []networkingv1.NetworkPolicyIngressRule {
	return []networkingv1.NetworkPolicyIngressRule{{
		From:  []networkingv1.NetworkPolicyPeer{Gateways(gatewayNamespace)},
		Ports: tcp(RelayPort),
	}, {
		From: []networkingv1.NetworkPolicyPeer{{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{LabelMetrics: "true"}},
		}},
		Ports: tcp(MetricsPort, RelayMetricsPort),
	}}
}

func egress() []networkingv1.NetworkPolicyEgressRule {
	dns := networkingv1.NetworkPolicyPort{Protocol: new(corev1.ProtocolUDP), Port: new(intstr.FromInt32(53))}
	return []networkingv1.NetworkPolicyEgressRule{{
		To: []networkingv1.NetworkPolicyPeer{
			{IPBlock: &networkingv1.IPBlock{CIDR: "0.0.0.0/0", Except: OfTheNode4}},
			{IPBlock: &networkingv1.IPBlock{CIDR: "::/0", Except: OfTheNode6}},
			{NamespaceSelector: &metav1.LabelSelector{}}, // Pods, which are no address of an ipBlock to some network plugins.
		},
	}, {
		Ports: append(tcp(anywherePorts...), dns),
	}}
}

// tcp names the ports with their protocol, as the API server would, so that what is there can be compared.
func tcp(ports ...int32) []networkingv1.NetworkPolicyPort {
	all := make([]networkingv1.NetworkPolicyPort, 0, len(ports))
	for _, port := range ports {
		all = append(all, networkingv1.NetworkPolicyPort{Protocol: new(corev1.ProtocolTCP),
			Port: new(intstr.FromInt32(port))})
	}
	return all
}
