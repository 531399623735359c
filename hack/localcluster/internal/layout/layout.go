// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package layout names every place and address of a local cluster, so that the side that starts it, the side
// that runs inside it and the tests agree.
//
// All names follow from the cluster's directory: two clusters in two directories share nothing.
package layout

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Addresses inside the cluster's private network namespace. They are the same in every cluster, and nothing
// outside ever sees them.
const (
	NodeIP      = "192.168.77.1"
	ServiceCIDR = "10.96.0.0/16"
	// ServiceIP is what the Service "kubernetes" gets: the first address of ServiceCIDR.
	ServiceIP  = "10.96.0.1"
	PodCIDR    = "10.244.0.0/24"
	PodGateway = "10.244.0.1"
	PodBridge  = "cni0"
	// DNSIP is what the Service kube-dns gets in a cluster with a network.
	DNSIP = "10.96.0.10"
	// APIServer is where the API server is reached from inside.
	APIServer = "127.0.0.1:443"
	// VolumesDir holds the directories of persistent volumes.
	VolumesDir = "/var/lib/local-volumes"
	// PauseImage is the reference build.sh packs the pause program under.
	PauseImage = "localhost/pause:dev"
)

// Node is one of the nodes that a cluster can have. All of them share the cluster's namespaces, and so its network: a
// node is a kubelet and a containerd with directories of their own.
type Node struct {
	Name, IP string
	// suffix tells its directories, programs and files from those of the first node.
	suffix string
	// KubeletPort and HealthPort are the kubelet's.
	KubeletPort, HealthPort string
}

// Nodes are the nodes that a cluster can have.
var Nodes = []Node{
	{Name: "node1", IP: NodeIP, KubeletPort: "10250", HealthPort: "10248"},
	{Name: "node2", IP: "192.168.77.2", suffix: "-node2", KubeletPort: "10260", HealthPort: "10258"},
}

// Own is a name or a directory for the node alone.
func (n Node) Own(name string) string { return name + n.suffix }

// ContainerdSocket is on the cluster's private /run; that of the first node is the default one.
func (n Node) ContainerdSocket() string { return n.Own("/run/containerd") + "/containerd.sock" }

// Cluster is one local cluster.
type Cluster struct {
	// Dir holds everything the cluster writes. Absolute.
	Dir string
	// Bin is the directory that build.sh printed. Absolute.
	Bin string
	// Network is the directory that network/build.sh printed. Absolute. If it is empty, the cluster has no service proxy
	// and no DNS, and does not enforce NetworkPolicies.
	Network string
	// Nodes are its nodes.
	Nodes []Node
}

// New makes a Cluster of its directories, absolute and free of symbolic links: the places are mounted and
// compared with mount tables, which know real paths only. No directory has to exist.
func New(dir, bin, network string) (Cluster, error) {
	d, err := realPath(dir)
	if err != nil {
		return Cluster{}, fmt.Errorf("cluster directory: %w", err)
	}
	b, err := realPath(bin)
	if err != nil {
		return Cluster{}, fmt.Errorf("directory of the programs: %w", err)
	}
	n, err := realPath(network)
	if err != nil {
		return Cluster{}, fmt.Errorf("directory of the network's programs: %w", err)
	}
	return Cluster{Dir: d, Bin: b, Network: n, Nodes: Nodes[:1]}, nil
}

// realPath resolves the part of a path that exists and keeps the rest.
func realPath(p string) (string, error) {
	if p == "" {
		return "", nil
	}
	p, err := filepath.Abs(p)
	if err != nil {
		return "", err
	}
	rest := ""
	for head := p; ; head = filepath.Dir(head) {
		real, err := filepath.EvalSymlinks(head)
		if err == nil {
			return filepath.Join(real, rest), nil
		}
		if !os.IsNotExist(err) || head == filepath.Dir(head) {
			return "", err
		}
		rest = filepath.Join(filepath.Base(head), rest)
	}
}

// Path joins names to the cluster's directory.
func (c Cluster) Path(names ...string) string {
	return filepath.Join(append([]string{c.Dir}, names...)...)
}

// Kubeconfig is the administrator's kubeconfig for use on this machine.
func (c Cluster) Kubeconfig() string { return c.Path("kubeconfig") }

// State is where the running cluster's process and address are written down.
func (c Cluster) State() string { return c.Path("cluster.json") }

// Log is the log file of one of the cluster's programs.
func (c Cluster) Log(program string) string { return c.Path("log", program+".log") }

// PKI is the directory of keys and certificates.
func (c Cluster) PKI() string { return c.Path("pki") }

// NodeDir is the directory of the node's programs.
func (c Cluster) NodeDir() string { return filepath.Join(c.Bin, "node") }

// CNI is the directory of the node's network plugins.
func (c Cluster) CNI() string { return filepath.Join(c.NodeDir(), "cni") }

// Images is the directory of the images that every node needs.
func (c Cluster) Images() string { return filepath.Join(c.NodeDir(), "images") }

// controlPlane are the programs of the set that the integration tests use as well.
var controlPlane = map[string]bool{"etcd": true, "kube-apiserver": true, "kube-controller-manager": true,
	"kubectl": true}

// Program is the path of one of the programs that build.sh makes.
func (c Cluster) Program(name string) string {
	if controlPlane[name] {
		return filepath.Join(c.Bin, "envtest", name)
	}
	return filepath.Join(c.NodeDir(), name)
}

// NetworkProgram is the path of one of the programs that network/build.sh makes.
func (c Cluster) NetworkProgram(name string) string { return filepath.Join(c.Network, name) }

// Programs are all programs a cluster needs, for checking that they are there.
func (c Cluster) Programs() []string {
	var paths []string
	for _, p := range []string{
		"etcd", "kube-apiserver", "kube-controller-manager", "kubectl", "kube-scheduler", "kubelet",
		"containerd", "containerd-shim-runc-v2", "ctr", "runc", "cni/bridge", "cni/host-local", "images/pause.tar",
	} {
		paths = append(paths, c.Program(p))
	}
	if c.Network != "" {
		for _, p := range []string{"kube-proxy", "coredns", "netpol"} {
			paths = append(paths, c.NetworkProgram(p))
		}
	}
	return paths
}

// Cgroup is the name of the cluster's own control group, in every hierarchy.
func (c Cluster) Cgroup() string {
	return fmt.Sprintf("parley-%x", sha256.Sum256([]byte(c.Dir)))[:len("parley-")+12]
}

// NodeDataDirs are what the nodes keep on the disk.
func (c Cluster) NodeDataDirs() (dirs []string) {
	for _, n := range c.Nodes {
		dirs = append(dirs, n.Own("/var/lib/kubelet"), n.Own("/var/lib/containerd"), n.Own("/var/log/pods"))
	}
	return dirs
}

// CgroupOf is the name of the control group with the pods of a node.
func (c Cluster) CgroupOf(n Node) string {
	if n.suffix == "" {
		return c.Cgroup()
	}
	return c.Cgroup() + "/" + n.Name
}

// hidden are the directories that a cluster sees through a private layer (see package boot). Nothing that the
// cluster has to share with the machine may be below them.
var hidden = []string{"/var/lib", "/var/log", "/etc", "/run", "/proc", "/sys", "/dev"}

// Check reports a directory that cannot hold a cluster.
func (c Cluster) Check() error {
	if c.Dir == "" || c.Dir == "/" {
		return fmt.Errorf("the cluster's directory is not set: use -dir")
	}
	for _, own := range []string{c.Dir, c.Bin, c.Network} {
		for _, h := range hidden {
			if own == h || strings.HasPrefix(own, h+"/") {
				return fmt.Errorf("%s is below %s, which the cluster sees through a private layer: choose another directory", own,
					h)
			}
		}
	}
	return nil
}
