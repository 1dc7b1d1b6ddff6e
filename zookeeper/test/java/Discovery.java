import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.Map;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.x.discovery.ServiceCache;
import org.apache.curator.x.discovery.ServiceDiscovery;
import org.apache.curator.x.discovery.ServiceDiscoveryBuilder;
import org.apache.curator.x.discovery.ServiceInstance;
import org.apache.curator.x.discovery.ServiceProvider;
import org.apache.curator.x.discovery.details.JsonInstanceSerializer;
import org.apache.curator.x.discovery.details.ServiceCacheListener;

/** PATH; instances are JSON as Curator's own serializer reads and writes it. */
final class Discovery implements Peer.Recipe {
  private final ServiceDiscovery<Object> discovery;
  private final JsonInstanceSerializer<Object> serializer = new JsonInstanceSerializer<>(Object.class);
  private final Map<String, ServiceInstance<Object>> registered = new ConcurrentHashMap<>();
  private final String name;
  private ServiceCache<Object> cache;
  private ServiceProvider<Object> provider;

  Discovery(CuratorFramework client, String name, List<String> arguments) throws Exception {
    this.name = name;
    discovery =
        ServiceDiscoveryBuilder.builder(Object.class)
            .client(client)
            .basePath(arguments.get(0))
            .serializer(serializer)
            .build();
    discovery.start();
  }

  private ServiceInstance<Object> read(String json) throws Exception {
    return serializer.deserialize(json.getBytes(StandardCharsets.UTF_8));
  }

  private String write(ServiceInstance<Object> instance) throws Exception {
    return new String(serializer.serialize(instance), StandardCharsets.UTF_8);
  }

  @Override
  public List<String> call(String operation, List<String> arguments) throws Exception {
    switch (operation) {
      case "register":
        ServiceInstance<Object> instance = read(arguments.get(0));
        discovery.registerService(instance);
        registered.put(instance.getName() + "/" + instance.getId(), instance);
        return Peer.words();
      case "update":
        discovery.updateService(read(arguments.get(0)));
        return Peer.words();
      case "unregister":
        discovery.unregisterService(registered.remove(arguments.get(0) + "/" + arguments.get(1)));
        return Peer.words();
      case "names":
        List<String> names = new ArrayList<>(discovery.queryForNames());
        Collections.sort(names);
        return names;
      case "instances":
        List<String> found = new ArrayList<>();
        for (ServiceInstance<Object> one : discovery.queryForInstances(arguments.get(0))) found.add(write(one));
        Collections.sort(found);
        return found;
      case "again":
        boolean compatible = !Boolean.parseBoolean(arguments.get(1));
        JsonInstanceSerializer<Object> again = new JsonInstanceSerializer<>(Object.class, compatible);
        byte[] written = again.serialize(read(arguments.get(0)));
        return Peer.words(new String(written, StandardCharsets.UTF_8));
      case "uri":
        return Peer.words(read(arguments.get(0)).buildUriSpec());
      case "provide":
        cache = discovery.serviceCacheBuilder().name(arguments.get(0)).build();
        cache.addListener(
            new ServiceCacheListener() {
              @Override
              public void cacheChanged() {
                Peer.event(name, "changed");
              }

              @Override
              public void stateChanged(CuratorFramework any, ConnectionState state) {
                // the client's own event tells
              }
            });
        cache.start();
        provider = discovery.serviceProviderBuilder().serviceName(arguments.get(0)).build();
        provider.start();
        return Peer.words();
      case "next":
        ServiceInstance<Object> next = provider.getInstance();
        return Peer.words(next == null ? "-" : next.getId());
      case "close":
        discovery.close();
        return Peer.words();
      default:
        throw Peer.unknown(operation);
    }
  }
}
