INSERT INTO `job_info` (`id`, `job_name`, `job_description`, `job_params`, `time_expression_type`, `time_expression`, `execute_type`, `processor_info`, `max_instance_num`, `instance_time_limit`, `instance_retry_num`, `status`) VALUES
(1, 'settle', 'Settle accounts', 'eu', 2, '0 15 10 ? * 2-6', 1, 'com.example.Settle', 1, 60000, 2, 1),
(2, 'sweep', NULL, NULL, 3, '30000', 2, 'com.example.Sweep', 0, 0, 0, 2),
(3, 'gone', NULL, NULL, 3, '30000', 1, 'com.example.Gone', 0, 0, 0, 99);
