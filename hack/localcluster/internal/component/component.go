// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package component holds the command lines and configuration files of the cluster's programs, as data.
//
// The cluster is for one developer on a small machine: one node or two, no leader election, an etcd that does not wait
// for the disk, and client rates high enough that the start is not throttled. Everything that decides what a
// manifest may do (RBAC, node restriction, admission, Pod Security, policies) is as in a real cluster.
package component

import (
	"path/filepath"

	"parley.dev/parley/hack/localcluster/internal/layout"
)

// Component is one long-running program.
type Component struct {
	// Name is the program's name; its log is named after it.
	Name string
	Path string
	Args []string
}

func component(l layout.Cluster, name string, args ...string) Component {
	return Component{Name: name, Path: l.Program(name), Args: args}
}

const etcdURL = "http://127.0.0.1:2379"

// Etcd stores the objects. It does not sync to disk: the data is thrown away with the cluster.
func Etcd(l layout.Cluster) Component {
	return component(l, "etcd",
		"--data-dir="+l.Path("etcd"), "--unsafe-no-fsync", "--log-level=warn",
		"--listen-client-urls="+etcdURL, "--advertise-client-urls="+etcdURL, "--listen-peer-urls=http://127.0.0.1:2380",
		"--enable-pprof")
}

// APIServer is the API server. It also listens on the address of the Service "kubernetes", which is a local
// address of the node; that is why pods reach it without a service proxy.
func APIServer(l layout.Cluster) Component {
	pki := func(name string) string { return filepath.Join(l.PKI(), name) }
	return component(l, "kube-apiserver",
		"--etcd-servers="+etcdURL, "--bind-address=0.0.0.0", "--secure-port=443", "--advertise-address="+layout.NodeIP,
		"--service-cluster-ip-range="+layout.ServiceCIDR,
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true",
		"--client-ca-file="+pki("ca.crt"),
		"--tls-cert-file="+pki("apiserver.crt"), "--tls-private-key-file="+pki("apiserver.key"),
		"--kubelet-client-certificate="+pki("apiserver-kubelet-client.crt"),
		"--kubelet-client-key="+pki("apiserver-kubelet-client.key"),
		"--kubelet-preferred-address-types=InternalIP",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+pki("sa.pub"), "--service-account-signing-key-file="+pki("sa.key"),
		"--requestheader-client-ca-file="+pki("front-proxy-ca.crt"), "--requestheader-allowed-names=front-proxy-client",
		"--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--proxy-client-cert-file="+pki("front-proxy-client.crt"), "--proxy-client-key-file="+pki("front-proxy-client.key"))
}

// controllerFlags are what the controller manager and the scheduler have in common. With the default client rate
// the controller manager needs 5 s only to create its service accounts.
func controllerFlags(l layout.Cluster, name string) []string {
	kubeconfig := filepath.Join(l.PKI(), name+".kubeconfig")
	return []string{
		"--kubeconfig=" + kubeconfig, "--authentication-kubeconfig=" + kubeconfig, "--authorization-kubeconfig=" + kubeconfig,
		"--leader-elect=false", "--bind-address=127.0.0.1", "--kube-api-qps=500", "--kube-api-burst=1000",
	}
}

// ControllerManager runs Kubernetes' own controllers: garbage collection, service accounts, Deployments.
func ControllerManager(l layout.Cluster) Component {
	const name = "kube-controller-manager"
	pki := func(file string) string { return filepath.Join(l.PKI(), file) }
	return component(l, name, append(controllerFlags(l, name),
		"--service-account-private-key-file="+pki("sa.key"), "--root-ca-file="+pki("ca.crt"),
		"--client-ca-file="+pki("ca.crt"),
		"--requestheader-client-ca-file="+pki("front-proxy-ca.crt"),
		"--cluster-signing-cert-file="+pki("ca.crt"), "--cluster-signing-key-file="+pki("ca.key"),
		"--use-service-account-credentials")...)
}

// Scheduler puts pods on nodes.
func Scheduler(l layout.Cluster) Component {
	const name = "kube-scheduler"
	return component(l, name, controllerFlags(l, name)...)
}

// Containerd runs a node's containers; its shim and runc are found through PATH and its configuration.
func Containerd(l layout.Cluster, n layout.Node) Component {
	c := component(l, "containerd", "--config="+containerdConfig(l, n))
	c.Name = n.Own(c.Name)
	return c
}

// Kubelet runs a node's pods.
func Kubelet(l layout.Cluster, n layout.Node) Component {
	c := component(l, "kubelet",
		"--config="+kubeletConfig(l, n), "--kubeconfig="+filepath.Join(l.PKI(), n.Own("kubelet")+".kubeconfig"),
		"--hostname-override="+n.Name, "--node-ip="+n.IP,
		"--root-dir="+n.Own("/var/lib/kubelet"), "--cert-dir="+l.Path(n.Own("kubelet-pki")), "--v=2")
	c.Name = n.Own(c.Name)
	return c
}

// Network are the programs that make Services, their names and NetworkPolicies work. kube-proxy leaves the kernel's
// limits of tracked connections alone, because they hold for the whole machine.
func Network(l layout.Cluster) []Component {
	kubeconfig := "--kubeconfig=" + filepath.Join(l.PKI(), "admin.kubeconfig")
	programs := []Component{
		{Name: "kube-proxy", Args: []string{kubeconfig, "--proxy-mode=nftables", "--cluster-cidr=" + layout.PodCIDR,
			"--hostname-override=" + l.Nodes[0].Name, "--conntrack-max-per-core=0",
			"--conntrack-tcp-timeout-established=0", "--conntrack-tcp-timeout-close-wait=0"}},
		{Name: "coredns", Args: []string{"--conf=" + corefile(l)}},
		{Name: "netpol", Args: []string{kubeconfig, "--service-cluster-ip-range=" + layout.ServiceCIDR}},
	}
	for i := range programs {
		programs[i].Path = l.NetworkProgram(programs[i].Name)
	}
	return programs
}

// ImportImage are the arguments of containerd's ctr that load an image tar. The image is pinned: it cannot be
// pulled again, so it must not be collected.
func ImportImage(socket, tar string) []string {
	return []string{"--address=" + socket, "--namespace=k8s.io", "images", "import",
		"--label=io.cri-containerd.pinned=pinned", tar}
}
