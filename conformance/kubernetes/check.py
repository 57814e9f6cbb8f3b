"""The manifests of packaging/kubernetes: by the schemas of Kubernetes, by the table of keys, and by
the ports, folders and users of the images that they run.
"""

import pathlib
import re
import sys

import kubernetes_validate
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDER = ROOT / "packaging/kubernetes"
# The oldest and the newest version that a cluster is likely to have.
VERSIONS = ["1.28", "1.37"]
faults = []


def check(holds, where, what):
    if not holds:
        faults.append(f"{where}: {what}")


def keys():
    """The keys of the configuration, from the table that a test holds against the program."""
    text = (ROOT / "docs/reference/configuration.md").read_text()
    return set(re.findall(r"^\| `([a-z-]+)` \|", text, re.M))


def image():
    """The environment that the image of the server has, and its user."""
    text = (ROOT / "scripts/package-image").read_text()
    environment = dict(re.findall(r'^    "(ENTRESOL_\w+)": "?([^",]+)"?,$', text, re.M))
    for name in ["DATA", "USER"]:
        environment[name] = re.search(rf'^{name} = "?([^"\n]+)"?$', text, re.M)[1]
    return environment


def validate(where, documents):
    for document in documents:
        for version in VERSIONS:
            try:
                kubernetes_validate.validate(document, version, strict=True)
            except kubernetes_validate.ValidationError as error:
                kind = document.get("kind")
                check(False, where, f"{kind} by the schema of {version}: {error.message}")


def agrees(where, documents):
    """What every set of pods must keep: names that are used are there. Returns its container."""
    service = next(each for each in documents if each["kind"] == "Service")
    stateful = next(each for each in documents if each["kind"] == "StatefulSet")
    spec = stateful["spec"]
    pod = spec["template"]["spec"]
    container = pod["containers"][0]
    labels = spec["template"]["metadata"]["labels"]
    check(spec["serviceName"] == service["metadata"]["name"], where, "serviceName is no service")
    for selector in [spec["selector"]["matchLabels"], service["spec"]["selector"]]:
        check(selector.items() <= labels.items(), where, f"{selector} selects no pod")
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    for port in service["spec"]["ports"]:
        target = port.get("targetPort", port["port"])
        inner = ports.get(target, target)
        # Ports between nodes need not be named by the container.
        check(inner == port["port"], where, f"port {port} leads to {inner}")
    for probe, path in [("startupProbe", "live"), ("livenessProbe", "live"),
                        ("readinessProbe", "ready")]:
        asked = container[probe]["httpGet"]
        check(asked["port"] in ports, where, f"{probe}: no port is named {asked['port']}")
        check(asked["path"] == f"/health/{path}", where, f"{probe} asks {asked['path']}")
    there = [each["name"] for each in pod["volumes"]]
    there += [each["metadata"]["name"] for each in spec["volumeClaimTemplates"]]
    mounted = [each["name"] for each in container["volumeMounts"]]
    check(sorted(there) == sorted(mounted), where, f"volumes {there}, mounts {mounted}")
    check(pod["securityContext"]["runAsNonRoot"] is True, where, "it may run as root")
    check("memory" in container["resources"]["limits"], where, "its memory has no limit")
    return pod, container, ports


def suits_the_server(where, pod, container, ports):
    known, of_image = keys(), image()
    options = dict(re.fullmatch(r"--([a-z-]+)=(.+)", word).groups() for word in container["args"])
    for name in options:
        check(name in known, where, f"--{name} is no key of docs/reference/configuration.md")
    for name in of_image:
        if name.startswith("ENTRESOL_"):
            key = name.removeprefix("ENTRESOL_").lower().replace("_", "-")
            check(key in known, "scripts/package-image", f"{name} is no key")
    for name, variable in [("resp", "ENTRESOL_PORT"), ("admin", "ENTRESOL_ADMIN_PORT")]:
        found = (str(ports.get(name)), of_image[variable])
        check(found[0] == found[1], where, f"port {name} is {found[0]}, the image's {found[1]}")
    mounts = {each["name"]: each["mountPath"] for each in container["volumeMounts"]}
    check(mounts["data"] == of_image["DATA"], where, f"the volume is at {mounts['data']}")
    secret = next(each["secret"] for each in pod["volumes"] if "secret" in each)
    files = [f"{mounts['secret']}/{item['path']}" for item in secret["items"]]
    for path in [of_image["ENTRESOL_USERS"], options.get("admin-token")]:
        check(path in files, where, f"{path} is not of the secret, which has {files}")
    user = pod["securityContext"]["runAsUser"]
    check(str(user) == of_image["USER"], where, f"user {user}, the image's {of_image['USER']}")


def main():
    for name in ["entresol.yaml", "grid.yaml"]:
        documents = list(yaml.safe_load_all((FOLDER / name).read_text()))
        validate(name, documents)
        pod, container, ports = agrees(name, documents)
        if name == "entresol.yaml":
            suits_the_server(name, pod, container, ports)
        print(f"{name}: {len(documents)} documents, {len(VERSIONS)} versions of Kubernetes")
    print("\n".join(faults))
    sys.exit(bool(faults))


main()
